// SPDX-License-Identifier: Apache-2.0
#include "config/job_config.h"

#include <xxhash.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cpu/cpu_affinity.h"
#include "base/cpu/cpu_budget.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"
#include "config/field_path.h"
#include "config/placement_mode.h"
#include "config/text_proto.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace tug {
namespace {

using google::protobuf::Message;

// Fields that may differ between two nodes of one job: all use the coordinator's, or each machine
// its own.
constexpr const char* kNotIdentity[] = {
    "cluster.lanes_per_server",
    "cluster.compute_threads",
    "cluster.pin_threads",
    "data.resolved_alphabet",
    "data.resolved_symbols",
    "data.resolved_fingerprint",
    "data.resolved_tokenizer",
    "data.resolved_labels",
    "replay.resolved_profile",
    "trace",
    "watch",
    "security",
};

bool IsResolved(const std::string& path) { return absl::StrContains(path, "resolved_"); }

void Clear(JobConfig& config, const char* path) {
  const auto field = FindField(config, path);
  TUG_CHECK_OK(field);
  if (!field->IsPresent()) return;
  Message& parent = const_cast<Message&>(*field->message);  // of `config`
  parent.GetReflection()->ClearField(&parent, field->field);
}

// The configuration of a run, given as a job file, has these fields.
void ClearResolved(JobConfig& config) {
  for (const char* path : kNotIdentity) {
    if (IsResolved(path)) Clear(config, path);
  }
}

absl::Status RefuseResolved(const JobConfig& config) {
  for (const char* path : kNotIdentity) {
    if (!IsResolved(path)) continue;
    const auto field = FindField(config, path);
    TUG_CHECK_OK(field);
    if (field->IsPresent()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is filled in by the coordinator; remove it from the job"));
    }
  }
  return absl::OkStatus();
}

// At most one lane per layer on all servers together: a lane needs a segment, and every layer has
// some.
uint32_t DefaultLanes(const JobConfig& config, uint32_t cores) {
  if (config.exchange() == JobConfig::ALL_REDUCE) return 1;
  const uint32_t servers = std::max(config.cluster().servers(), 1u);
  const auto available = static_cast<int>(cores), sharing = static_cast<int>(servers);
  const int by_cores =
      config.device() == ClusterConfig::CUDA
          ? DefaultLanesBesideGpus(available, sharing, static_cast<int>(config.cluster().workers()))
          : DefaultLanesPerServer(available, sharing);
  return std::clamp(config.model().layers() / servers, 1u, static_cast<uint32_t>(by_cores));
}

// Whether the codec's error has the same size and direction step after step.
bool NeedsErrorFeedback(const PushCodecConfig& codec) {
  return codec.has_one_bit() || codec.has_int4() || codec.has_top_k() || codec.has_random_k() ||
         codec.has_top_k_int8() || codec.has_dgc() || codec.has_power_sgd() || codec.has_auto_();
}

// 1-bit Adam: v is computed from unencoded gradients, then frozen. Returns the part of the job with
// unencoded gradients, in fifths; 0: v as in Adam. Sparse codecs and power_sgd, and possibly
// `auto`, delay most of the gradient: longer for these. (With local steps v always comes from
// unencoded gradients.)
uint64_t WholeFifths(const JobConfig& config) {
  const PushCodecConfig& codec = config.comm().push_codec();
  if (config.optimizer().algorithm() != OptimizerConfig::ADAMW || config.sync().local_steps() > 1) {
    return 0;
  }
  if (codec.has_one_bit()) return 1;
  const bool late = codec.has_top_k() || codec.has_random_k() || codec.has_top_k_int8() ||
                    codec.has_power_sgd() || codec.has_auto_();
  return late && config.sync().policy() != SyncConfig::ASP ? 2 : 0;
}

// A virtual worker may be up to `staleness` steps ahead of the updates that v is computed from, so
// its pushes stay unencoded that much longer.
void FillPushCodecDefaults(JobConfig& config) {
  PushCodecConfig& codec = *config.mutable_comm()->mutable_push_codec();
  OptimizerConfig& optimizer = *config.mutable_optimizer();
  const uint64_t fifths = WholeFifths(config);
  if (!codec.has_error_feedback()) codec.set_error_feedback(NeedsErrorFeedback(codec));
  const uint64_t ahead = config.sync().policy() == SyncConfig::SSP ? config.sync().staleness() : 0;
  if (!codec.has_warmup_steps()) {
    const uint64_t whole =
        std::max(optimizer.warmup_steps(), fifths * (config.train().steps() / 5));
    codec.set_warmup_steps(fifths > 0 ? whole + ahead : 0);
  }
  if (codec.blocks().empty()) codec.set_blocks("*");
  // With dgc, elements that are not encoded would have no momentum.
  if (!codec.has_vectors()) codec.set_vectors(codec.has_dgc());
  if (!codec.has_min_elements()) codec.set_min_elements(codec.has_dgc() ? 0 : 1024);
  if (codec.has_dgc() && !codec.dgc().has_density_warmup_steps()) {
    codec.mutable_dgc()->set_density_warmup_steps(config.train().steps() / 10);
  }
  if (codec.has_power_sgd() && !codec.power_sgd().has_columns()) {
    codec.mutable_power_sgd()->set_columns(config.model().width());
  }
  if (codec.has_auto_() && codec.auto_().candidates().empty()) {
    codec.mutable_auto_()->set_candidates("int8,one_bit,top_k_int8");
  }
  if (!optimizer.adamw().has_freeze_v_after()) {
    const uint64_t whole = codec.warmup_steps() - std::min(codec.warmup_steps(), ahead);
    optimizer.mutable_adamw()->set_freeze_v_after(fifths > 0 ? whole : 0);
  }
}

// Defaults that depend on other fields, which are set by now.
void FillComputedDefaults(JobConfig& config, uint32_t cores) {
  ClusterConfig& cluster = *config.mutable_cluster();
  if (!cluster.has_virtual_workers()) cluster.set_virtual_workers(cluster.workers());
  if (!cluster.has_servers()) {
    cluster.set_servers(HasServersBesideWorkers(config) ? std::min(cluster.workers(), 256u) : 1);
  }
  // A replay's compute thread sleeps, so more threads have no effect.
  const bool replays = config.compute() == JobConfig::REPLAY;
  if (cluster.compute_threads() == 0) {
    if (replays) {
      cluster.set_compute_threads(1);
    } else if (config.device() == ClusterConfig::CUDA) {
      cluster.set_compute_threads(kGpuComputeThreads);
    }
  }
  if (!cluster.has_lanes_per_server()) cluster.set_lanes_per_server(DefaultLanes(config, cores));
  TrainConfig& train = *config.mutable_train();
  if (!train.has_micro_batch()) {
    train.set_micro_batch(
        std::max(train.global_batch() / std::max(cluster.virtual_workers(), 1u), 1u));
  }
  ModelConfig& model = *config.mutable_model();
  if (model.norm() == ModelConfig::NORM_DEFAULT) {
    model.set_norm(model.family() == ModelConfig::DECODER ? ModelConfig::PRE : ModelConfig::POST);
  }
  if (!model.has_mlp_width()) model.set_mlp_width(4 * model.width());
  CommConfig& comm = *config.mutable_comm();
  if (comm.pull_format() == CommConfig::FORMAT_DEFAULT) {
    comm.set_pull_format(train.precision() == TrainConfig::BF16 ? CommConfig::BF16
                                                                : CommConfig::FP32);
  }
  OptimizerConfig& optimizer = *config.mutable_optimizer();
  if (!optimizer.has_min_learning_rate()) {
    optimizer.set_min_learning_rate(optimizer.learning_rate() / 10);
  }
  if (!optimizer.has_warmup_steps()) {
    optimizer.set_warmup_steps(std::min<uint64_t>(100, train.steps() / 10));
  }
  if (!optimizer.has_decay_steps()) optimizer.set_decay_steps(train.steps());
  FillPushCodecDefaults(config);
}

}  // namespace

JobConfig IdentityOf(JobConfig config) {
  for (const char* path : kNotIdentity) Clear(config, path);
  return config;
}

absl::StatusOr<JobConfig> LoadJobConfig(const std::string& path,
                                        std::span<const std::string> overrides) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kJobFileLimitBytes));
  return ParseJobConfig(text, path, overrides);
}

absl::StatusOr<JobConfig> ParseJobFields(const std::string& text, const std::string& source,
                                         std::span<const std::string> overrides) {
  JobConfig config;
  RETURN_IF_ERROR(ParseTextProto(text, source, config));
  ClearResolved(config);
  for (const std::string& override_text : overrides) {
    RETURN_IF_ERROR(ApplyOverride(config, override_text));
  }
  RETURN_IF_ERROR(RefuseResolved(config));
  return config;
}

absl::StatusOr<JobConfig> ParseJobConfig(const std::string& text, const std::string& source,
                                         std::span<const std::string> overrides) {
  ASSIGN_OR_RETURN(JobConfig config, ParseJobFields(text, source, overrides));
  FillDefaults(config);
  RETURN_IF_ERROR(Validate(config));
  return config;
}

absl::Status ApplyOverride(JobConfig& config, const std::string& override_text) {
  const size_t equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", override_text, " has no value; write --set path.to.field=value"));
  }
  return SetFieldFromText(config, override_text.substr(0, equals),
                          override_text.substr(equals + 1));
}

void FillDefaults(JobConfig& config, uint32_t cores) {
  if (config.name().empty()) config.set_name("job");
  for (const auto& [path, rule] : JobFields()) {
    if (!rule.has_default_() || !Applies(config, path)) continue;
    const auto ref = FindField(config, path);
    TUG_CHECK_OK(ref);
    const bool is_enum = ref->field->enum_type() != nullptr;
    const bool set = is_enum ? ref->Number() != 0 : ref->IsSet();
    if (set) continue;
    TUG_CHECK_OK(SetFieldFromText(config, path, rule.default_()));
  }
  config.mutable_data();
  FillComputedDefaults(config, cores);
}

void FillDefaults(JobConfig& config) {
  FillDefaults(config, static_cast<uint32_t>(ReadCpuBudget().usable));
}

uint64_t Fingerprint(const JobConfig& config) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    IdentityOf(config).SerializeToCodedStream(&coded);
  }
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace tug
