#include "proto/job_rules.h"

#include <cctype>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "proto/field_path.h"
#include "proto/sync_mode.h"

namespace tug {
namespace {

constexpr double kAnyUint64 = 18446744073709551615.0;
constexpr uint64_t kFloatBytes = 4;

constexpr FieldRule kFieldRules[] = {
    // path, default, min, max, meaning
    {"seed", 1, 0, kAnyUint64, "any whole number"},
    {"cluster.servers", 1, 1, 256, "server processes"},
    {"cluster.workers", 1, 1, 1024, "worker processes"},
    {"cluster.lanes_per_server", kComputed, 1, 64, "lanes"},
    {"cluster.virtual_workers", kComputed, 1, 4096, "virtual workers"},
    {"cluster.compute_threads", 0, 0, 256, "threads per worker"},
    {"cluster.pin_threads", 1, 0, 1, "true or false"},
    {"cluster.spare_servers", 0, 0, 256, "server processes"},
    {"data.tokenizer", DataConfig::BYTE, 1, DataConfig::Tokenizer_MAX, "a tokenizer"},
    {"data.pieces", 8000, 260, 1e6, "pieces"},  // 259 stand for bytes and the ends of text
    {"data.random.samples", 0, 0, 1e9, "samples"},
    {"data.random.symbols", 0, 0, 1e7, "symbols"},
    {"data.validation_fraction", 0.1, 0, 0.5, "of the tokens"},
    {"model.family", ModelConfig::DECODER, 1, ModelConfig::Family_MAX, "a shape of transformer"},
    {"model.norm", kComputed, 1, ModelConfig::NormPlace_MAX, "a place of LayerNorm"},
    {"model.activation", ModelConfig::GELU, 1, ModelConfig::Activation_MAX, "an activation"},
    {"model.mlp_width", kComputed, 8, 65536, "elements"},
    {"model.classes", 0, 0, 65536, "classes"},
    {"model.layers", 4, 1, 256, "transformer layers"},
    {"model.width", 128, 8, 16384, "elements"},
    {"model.heads", 4, 1, 256, "attention heads"},
    {"model.context", 64, 2, 65536, "tokens"},
    {"model.dropout", 0, 0, 1, "probability", Ends::kMinOnly},
    {"model.tied_head", 1, 0, 1, "true or false"},
    {"model.bias", 1, 0, 1, "true or false"},
    {"model.vocabulary", 0, 0, 1e7, "symbols"},
    {"model.external", 0, 0, 1, "true or false"},
    {"train.steps", 1000, 1, 1e9, "optimizer steps"},
    {"train.global_batch", 8, 1, 1e6, "samples"},
    {"train.micro_batch", kComputed, 1, 65536, "samples"},
    {"train.eval_interval", 250, 0, 1e9, "optimizer steps"},
    {"train.eval_samples", 64, 0, 1e12, "samples"},
    {"train.precision", TrainConfig::FP32, 1, TrainConfig::Precision_MAX, "a number format"},
    {"train.recompute", TrainConfig::NONE, 1, TrainConfig::Recompute_MAX, "what is recomputed"},
    {"train.recompute_layers", 1, 1, 256, "layers"},
    {"train.label_smoothing", 0, 0, 1, "probability", Ends::kMinOnly},
    {"train.z_loss", 0, 0, 1, "weight"},
    {"train.patience", 0, 0, 1e6, "evaluations"},
    {"train.min_improvement", 0, 0, 1e3, "nats"},
    {"optimizer.adamw.beta1", 0.9, 0, 1, "decay of the mean", Ends::kMinOnly},
    {"optimizer.adamw.beta2", 0.99, 0, 1, "decay of the mean square", Ends::kMinOnly},
    {"optimizer.adamw.epsilon", 1e-8, 0, 1, "added to the root", Ends::kMaxOnly},
    {"optimizer.adamw.weight_decay", 0.1, 0, 1, "per unit of learning rate"},
    {"optimizer.algorithm", OptimizerConfig::ADAMW, 1, OptimizerConfig::Algorithm_MAX,
     "an optimizer"},
    {"optimizer.sgd.momentum", 0.9, 0, 1, "decay of the momentum", Ends::kMinOnly},
    {"optimizer.sgd.nesterov", 0, 0, 1, "true or false"},
    {"optimizer.sgd.weight_decay", 0, 0, 1, "per weight"},
    {"optimizer.learning_rate", 1e-3, 0, 10, "learning rate", Ends::kMaxOnly},
    {"optimizer.min_learning_rate", kComputed, 0, 10, "learning rate"},
    {"optimizer.warmup_steps", kComputed, 0, 1e9, "optimizer steps"},
    {"optimizer.decay_steps", kComputed, 1, 1e9, "optimizer steps"},
    {"optimizer.schedule", OptimizerConfig::COSINE, 1, OptimizerConfig::Schedule_MAX, "a schedule"},
    {"optimizer.clip", OptimizerConfig::GLOBAL, 1, OptimizerConfig::Clip_MAX, "a way of clipping"},
    {"optimizer.clip_norm", 1, 0, 1e6, "norm", Ends::kMaxOnly},
    {"sync.policy", SyncConfig::BSP, 1, SyncConfig::Policy_MAX, "a sync policy"},
    {"sync.replicas", 1, 1, 2, "copies"},
    {"sync.staleness", 4, 0, 65535, "steps"},
    {"sync.backups", 1, 1, 4095, "virtual workers"},
    {"sync.staleness_scaling", SyncConfig::INVERSE, 1, SyncConfig::StalenessScaling_MAX,
     "a scaling"},
    {"sync.delay_compensation", 0, 0, 1e3, "weight"},
    {"sync.local_steps", 1, 1, 65536, "optimizer steps"},
    {"sync.outer.learning_rate", 0.7, 0, 10, "learning rate", Ends::kMaxOnly},
    {"sync.outer.momentum", 0.9, 0, 1, "decay of the momentum", Ends::kMinOnly},
    {"sync.outer.nesterov", 1, 0, 1, "true or false"},
    {"sync.record", SyncConfig::OFF, 1, SyncConfig::Record_MAX, "what is recorded"},
    {"comm.segment_elements", 262144, 1024, 1 << 24, "elements, a power of two"},
    {"comm.partition_bytes", 4 << 20, 4 << 10, 256 << 20, "bytes"},
    {"comm.credit_bytes", 32 << 20, 16 << 10, 1e12, "bytes"},
    {"comm.pull_credit_bytes", 32 << 20, 16 << 10, 1e12, "bytes"},
    {"comm.scheduler", CommConfig::BYTESCHEDULER, 1, CommConfig::Scheduler_MAX,
     "an order of sending"},
    {"comm.tuner.trials", 20, 1, 1000, "trials"},
    {"comm.tuner.steps_per_trial", 5, 1, 10000, "steps"},
    {"comm.tuner.drift", 0.2, 0, 100, "part of the step time", Ends::kMaxOnly},
    {"comm.checksum", 1, 0, 1, "true or false"},
    {"comm.resend_ms", 10000, 100, 600000, "ms"},
    {"comm.push_format", CommConfig::FP32, 1, CommConfig::Format_MAX, "a number format"},
    {"comm.pull_format", kComputed, 1, CommConfig::Format_MAX, "a number format"},
    {"comm.sparse_embeddings", 1, 0, 1, "true or false"},
    {"comm.shared_memory", 1, 0, 1, "true or false"},
    {"comm.impair.delay_ms", 0, 0, 60000, "ms"},
    {"comm.impair.jitter_ms", 0, 0, 60000, "ms"},
    {"comm.impair.loss", 0, 0, 0.5, "probability"},
    {"comm.impair.rate_mbit", 0, 0, 1e6, "Mbit/s"},
    {"checkpoint.interval", 500, 0, 1e9, "optimizer steps"},
    {"checkpoint.keep", 2, 1, 1000, "checkpoints"},
    {"checkpoint.keep_best", 1, 0, 1, "true or false"},
    {"checkpoint.initial", 0, 0, 1, "true or false"},
    {"fault.heartbeat_ms", 200, 10, 60000, "ms"},
    {"fault.failure_timeout_ms", 5000, 30, 3600000, "ms"},
    {"fault.on_worker_loss", FaultConfig::REASSIGN, 1, FaultConfig::WorkerLoss_MAX, "what to do"},
    {"fault.max_rollbacks", 10, 0, 1e6, "rollbacks"},
    {"fault.coordinator_timeout_ms", 60000, 30, 86400000, "ms"},
    {"compute", JobConfig::CPU, 1, JobConfig::Compute_MAX, "a way to spend the time"},
    {"replay.time_scale", 1, 0, 1000, "times the profile's times"},
    {"replay.size_scale", 1, 0, 1000, "times the profile's parameters", Ends::kMaxOnly},
    {"trace.steps", 0, 0, 1000, "steps"},
    {"trace.first_step", 10, 1, 1e9, "a step of the run"},
    {"straggler.virtual_worker", 0, 0, 4095, "a virtual worker"},
    {"straggler.slowdown", 1, 1, 1000, "times as slow"},
    {"straggler.pause_probability", 0, 0, 1, "probability"},
    {"straggler.pause_ms", 0, 0, 600000, "ms"},
};

bool OnPieces(const DataConfig& data) {
  return data.tokenizer() == DataConfig::SENTENCEPIECE || data.tokenizer() == DataConfig::GPT2_BPE;
}

bool UpdatesByPush(const JobConfig& config) {
  return SyncModeOf(config.sync().policy()).update_per_push;
}

bool Replays(const JobConfig& config) { return config.compute() == JobConfig::REPLAY; }

// Whether workers run the model that the job describes, on data that it names.
bool TrainsOwnModel(const JobConfig& config) {
  return !config.model().external() && !Replays(config);
}

// Whether the rate comes down to its minimum at decay_steps.
bool Decays(const OptimizerConfig& optimizer) {
  return optimizer.schedule() != OptimizerConfig::CONSTANT &&
         optimizer.schedule() != OptimizerConfig::INVERSE_SQRT;
}

// The combinations that do not hold, in the order they are checked.
constexpr ValidityRule kValidityRules[] = {
    {"cluster.workers", "cluster.virtual_workers",
     [](const JobConfig& c) { return c.cluster().workers() > c.cluster().virtual_workers(); },
     "every worker carries at least one virtual worker: start fewer workers or set more virtual "
     "workers"},
    {"cluster.virtual_workers", "model.external",
     [](const JobConfig& c) {
       return c.model().external() && c.cluster().virtual_workers() != c.cluster().workers();
     },
     "a program pushes one gradient a step: leave virtual_workers out"},
    {"data.path", "model.external",
     [](const JobConfig& c) { return c.model().external() && !c.data().path().empty(); },
     "programs with a model of their own read their own data: leave data.path out"},
    {"train.init_from", "model.external",
     [](const JobConfig& c) { return c.model().external() && !c.train().init_from().empty(); },
     "programs with a model of their own set its weights: leave train.init_from out"},
    {"data.random.samples", "model.external",
     [](const JobConfig& c) { return c.model().external() && c.data().random().samples() > 0; },
     "programs with a model of their own read their own data: leave data.random out"},
    {"model.external", "compute",
     [](const JobConfig& c) { return Replays(c) && c.model().external(); },
     "either programs declare the blocks, or a profile has them: leave one of the two out"},
    {"data.path", "compute",
     [](const JobConfig& c) { return Replays(c) && !c.data().path().empty(); },
     "a replay reads no data: leave data.path out"},
    {"data.random.samples", "compute",
     [](const JobConfig& c) { return Replays(c) && c.data().random().samples() > 0; },
     "a replay reads no data: leave data.random out"},
    {"train.init_from", "compute",
     [](const JobConfig& c) { return Replays(c) && !c.train().init_from().empty(); },
     "a replay has no model whose weights could be read: leave train.init_from out"},
    {"train.precision", "compute",
     [](const JobConfig& c) { return Replays(c) && c.train().precision() != TrainConfig::FP32; },
     "a replay computes nothing: choose what is sent with comm.push_format and comm.pull_format"},
    {"train.patience", "compute",
     [](const JobConfig& c) { return Replays(c) && c.train().patience() > 0; },
     "a replay evaluates nothing: leave train.patience out"},
    {"replay.profile", "compute",
     [](const JobConfig& c) { return Replays(c) && c.replay().profile().empty(); },
     "there is nothing to replay: set replay.profile to vgg16, resnet50, gpt2_124m or a file"},
    {"replay.profile", "compute",
     [](const JobConfig& c) { return !Replays(c) && !c.replay().profile().empty(); },
     "only a replay reads it: set compute to REPLAY, or leave replay.profile out"},
    {"data.random.samples", "model.family",
     [](const JobConfig& c) {
       return c.data().random().samples() > 0 && c.model().family() != ModelConfig::ENCODER;
     },
     "random samples are for a classifier: set model.family to ENCODER"},
    {"data.random.samples", "data.random.symbols",
     [](const JobConfig& c) {
       return c.data().random().samples() > 0 && c.data().random().symbols() == 0;
     },
     "random tokens are of 0 .. symbols - 1: set data.random.symbols"},
    {"data.random.samples", "data.path",
     [](const JobConfig& c) { return c.data().random().samples() > 0 && !c.data().path().empty(); },
     "random tokens take the place of text: leave one of the two out"},
    {"data.tokenizer", "data.tokenizer_path",
     [](const JobConfig& c) {
       return c.data().tokenizer() == DataConfig::GPT2_BPE && c.data().tokenizer_path().empty();
     },
     "its pieces are read, not trained: set data.tokenizer_path to a folder with vocab.json and "
     "merges.txt"},
    {"data.tokenizer_path", "data.tokenizer",
     [](const JobConfig& c) { return !OnPieces(c.data()) && !c.data().tokenizer_path().empty(); },
     "only SENTENCEPIECE and GPT2_BPE are read from files: choose one of them or leave the path "
     "out"},
    {"model.classes", "model.family",
     [](const JobConfig& c) {
       return c.model().classes() > 0 && c.model().family() != ModelConfig::ENCODER;
     },
     "only an ENCODER tells classes apart: leave model.classes out"},
    {"model.width", "model.heads",
     [](const JobConfig& c) { return c.model().width() % c.model().heads() != 0; },
     "each head gets an equal share: choose a width that is a multiple of heads"},
    {"model.context", "model.heads",
     [](const JobConfig& c) {
       const uint64_t context = c.model().context(), row = (context + 63) / 64 * 64;
       return TrainsOwnModel(c) && context * row > (uint64_t{1} << 34) / c.model().heads();
     },
     "a sample has at most 2^34 attention weights: shorten the context or use fewer heads"},
    {"train.global_batch", "cluster.virtual_workers",
     [](const JobConfig& c) {
       return TrainsOwnModel(c) && c.train().global_batch() % c.cluster().virtual_workers() != 0;
     },
     "each virtual worker gets an equal share: choose a batch that is a multiple of virtual "
     "workers"},
    {"train.micro_batch", "train.global_batch",
     [](const JobConfig& c) {
       const uint32_t share = c.train().global_batch() / c.cluster().virtual_workers();
       return TrainsOwnModel(c) && share % c.train().micro_batch() != 0;
     },
     "a micro batch divides global_batch / virtual_workers: choose a divisor, or leave it out"},
    {"train.eval_samples", "cluster.virtual_workers",
     [](const JobConfig& c) {
       return TrainsOwnModel(c) && c.train().eval_samples() > 0 &&
              c.train().eval_samples() < c.cluster().virtual_workers();
     },
     "every virtual worker evaluates a share: read at least as many samples, or 0 for all"},
    {"train.recompute_layers", "model.layers",
     [](const JobConfig& c) { return c.train().recompute_layers() > c.model().layers(); },
     "there are no more layers to compute again: lower it"},
    {"train.patience", "train.eval_interval",
     [](const JobConfig& c) {
       return c.train().patience() > 0 && c.train().eval_interval() == 0 && TrainsOwnModel(c);
     },
     "the only evaluation is at the end, where there is nothing to stop: set an interval"},
    {"train.patience", "data.validation_fraction",
     [](const JobConfig& c) {
       return c.train().patience() > 0 && c.data().validation_fraction() == 0 && TrainsOwnModel(c);
     },
     "without a validation split nothing is evaluated: set a fraction, or leave patience out"},
    {"optimizer.warmup_steps", "train.steps",
     [](const JobConfig& c) { return c.optimizer().warmup_steps() >= c.train().steps(); },
     "warm-up ends before training does: warm up for fewer steps or train for more"},
    {"optimizer.decay_steps", "optimizer.warmup_steps",
     [](const JobConfig& c) {
       return Decays(c.optimizer()) && c.optimizer().decay_steps() <= c.optimizer().warmup_steps();
     },
     "the schedule begins where warm-up ends: decay over more steps or warm up for fewer"},
    {"optimizer.min_learning_rate", "optimizer.learning_rate",
     [](const JobConfig& c) {
       return c.optimizer().schedule() != OptimizerConfig::CONSTANT &&
              c.optimizer().min_learning_rate() > c.optimizer().learning_rate();
     },
     "the rate only falls after warm-up: lower the minimum"},
    {"sync.backups", "cluster.virtual_workers",
     [](const JobConfig& c) {
       return c.sync().policy() == SyncConfig::BACKUP &&
              c.sync().backups() >= c.cluster().virtual_workers();
     },
     "an update needs one push at least: keep fewer backups or set more virtual workers"},
    {"sync.delay_compensation", "sync.policy",
     [](const JobConfig& c) { return c.sync().delay_compensation() > 0 && !UpdatesByPush(c); },
     "there is no delay to compensate: set sync.policy to SSP or ASP, or leave it out"},
    {"sync.delay_compensation", "optimizer.algorithm",
     [](const JobConfig& c) {
       return c.sync().delay_compensation() > 0 &&
              c.optimizer().algorithm() != OptimizerConfig::SGD;
     },
     "it is derived for SGD: set optimizer.algorithm to SGD, or leave it out"},
    {"sync.record", "sync.policy",
     [](const JobConfig& c) { return c.sync().record() == SyncConfig::ORDER && !UpdatesByPush(c); },
     "only the order of SSP and ASP is not known beforehand: leave sync.record out"},
    {"sync.record", "compute",
     [](const JobConfig& c) { return c.sync().record() == SyncConfig::ORDER && Replays(c); },
     "workers that replay compute nothing that could be computed again: leave sync.record out"},
    {"sync.record", "model.external",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER && c.model().external();
     },
     "a program's gradients cannot be computed again here: leave sync.record out"},
    {"sync.record", "comm.scheduler",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER && c.comm().scheduler() == CommConfig::AUTO;
     },
     "what is logged is of partitions that do not change: choose another scheduler"},
    {"sync.policy", "model.external",
     [](const JobConfig& c) {
       return c.sync().policy() == SyncConfig::BACKUP && c.model().external();
     },
     "a program cannot skip the steps that others have closed without it: choose another policy"},
    {"optimizer.clip", "model.external",
     [](const JobConfig& c) {
       return c.optimizer().clip() != OptimizerConfig::OFF && UpdatesByPush(c) &&
              c.model().external();
     },
     "under SSP and ASP gradients are clipped where they are made: set optimizer.clip to OFF and "
     "let the program clip"},
    {"sync.local_steps", "model.external",
     [](const JobConfig& c) { return c.sync().local_steps() > 1 && c.model().external(); },
     "a program takes its local steps by itself: leave sync.local_steps out"},
    {"sync.local_steps", "sync.policy",
     [](const JobConfig& c) { return c.sync().local_steps() > 1 && UpdatesByPush(c); },
     "sync.outer is for the mean over virtual workers, which there is not where every push is an "
     "update: set sync.policy to BSP or BACKUP, or leave local steps out"},
    {"straggler.virtual_worker", "cluster.virtual_workers",
     [](const JobConfig& c) {
       return c.straggler().virtual_worker() >= c.cluster().virtual_workers();
     },
     "there is no such virtual worker: they are numbered from 0"},
    {"straggler.slowdown", "model.external",
     [](const JobConfig& c) { return c.model().external() && c.straggler().slowdown() > 1; },
     "a program is as slow as it is: leave straggler out"},
    {"straggler.pause_probability", "model.external",
     [](const JobConfig& c) {
       return c.model().external() && c.straggler().pause_probability() > 0;
     },
     "a program is as slow as it is: leave straggler out"},
    {"sync.replicas", "cluster.servers",
     [](const JobConfig& c) { return c.sync().replicas() > c.cluster().servers(); },
     "copies of a segment lie on distinct servers: run more servers, or keep fewer copies"},
    {"sync.replicas", "sync.policy",
     [](const JobConfig& c) {
       return c.sync().replicas() > 1 && c.sync().policy() == SyncConfig::BACKUP;
     },
     "a job whose workers skip steps does not outlive the loss of a node: leave sync.replicas out"},
    {"sync.replicas", "model.external",
     [](const JobConfig& c) { return c.sync().replicas() > 1 && c.model().external(); },
     "programs with a model of their own do not outlive the loss of a node: leave sync.replicas "
     "out"},
    {"sync.replicas", "sync.record",
     [](const JobConfig& c) {
       return c.sync().replicas() > 1 && c.sync().record() == SyncConfig::ORDER;
     },
     "a log of updates is of lanes that keep their segments: leave one of the two out"},
    {"fault.coordinator_timeout_ms", "fault.failure_timeout_ms",
     [](const JobConfig& c) {
       return c.fault().coordinator_timeout_ms() < c.fault().failure_timeout_ms();
     },
     "nodes wait for a coordinator at least as long as it waits for them: raise it"},
    {"comm.segment_elements", nullptr,
     [](const JobConfig& c) {
       const uint64_t n = c.comm().segment_elements();
       return (n & (n - 1)) != 0;
     },
     "segments are powers of two: choose 65536, 131072, 262144, ..."},
    {"comm.credit_bytes", "comm.partition_bytes",
     [](const JobConfig& c) { return c.comm().credit_bytes() < c.comm().partition_bytes(); },
     "a partition that exceeds the credit is never sent: raise the credit"},
    {"comm.credit_bytes", "comm.segment_elements",
     [](const JobConfig& c) {
       return c.comm().credit_bytes() < kFloatBytes * c.comm().segment_elements();
     },
     "a segment (4 bytes an element) that exceeds the credit is never sent: raise the credit"},
    {"fault.failure_timeout_ms", "fault.heartbeat_ms",
     [](const JobConfig& c) {
       return c.fault().failure_timeout_ms() < 3 * c.fault().heartbeat_ms();
     },
     "a node may miss two heartbeats: wait at least 3 x heartbeat_ms"},
    {"trace.first_step", "train.steps",
     [](const JobConfig& c) {
       return c.trace().steps() > 0 && c.trace().first_step() > c.train().steps();
     },
     "there is no such step to trace: begin with an earlier one (--trace-steps A..B)"},
};

std::string RangeText(const FieldRule& rule) {
  const std::string min = absl::StrFormat("%.12g", rule.min);
  const std::string max = absl::StrFormat("%.12g", rule.max);
  switch (rule.ends) {
    case Ends::kBoth:
      return absl::StrCat(min, "..", max);
    case Ends::kMaxOnly:
      return absl::StrCat("(", min, ", ", max, "]");
    case Ends::kMinOnly:
      return absl::StrCat("[", min, ", ", max, ")");
  }
  return "";
}

bool InRange(const FieldRule& rule, double value) {
  if (!std::isfinite(value)) return false;
  if (value < rule.min || (value == rule.min && rule.ends == Ends::kMaxOnly)) return false;
  return value < rule.max || (value == rule.max && rule.ends != Ends::kMinOnly);
}

absl::Status CheckField(const JobConfig& config, const FieldRule& rule) {
  ASSIGN_OR_RETURN(const FieldRef ref, FindField(config, rule.path));
  const google::protobuf::EnumDescriptor* names = ref.field->enum_type();
  const double value = ref.Number();
  const bool known = names == nullptr ||
                     (value != 0 && names->FindValueByNumber(static_cast<int>(value)) != nullptr);
  if (!ref.IsSet() || (names != nullptr && value == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(rule.path,
                     " is not set in a configuration that should be complete; start "
                     "every node from the same build"));
  }
  if (known && InRange(rule, value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(rule.path, " = ", ref.Text(), " is out of range: ",
                   names == nullptr ? absl::StrCat(RangeText(rule), " ", rule.meaning)
                                    : absl::StrCat("one of ", EnumNames(*names)),
                   "; set ", rule.path));
}

// "train.steps = 10".
absl::StatusOr<std::string> NameAndValue(const JobConfig& config, const char* path) {
  ASSIGN_OR_RETURN(const FieldRef ref, FindField(config, path));
  return absl::StrCat(path, " = ", ref.Text());
}

absl::Status CheckText(const JobConfig& config) {
  const std::string& name = config.name();
  bool plain = !name.empty() && name.size() <= 64;
  for (const char c : name) {
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_');
  }
  if (!plain) {
    return absl::InvalidArgumentError(absl::StrCat(
        "name = \"", name, "\" is not a job name: 1..64 letters, digits, '-' or '_'; set name"));
  }
  if (config.data().path().empty() && config.data().random().samples() == 0 &&
      TrainsOwnModel(config) && config.replay().profile().empty()) {
    return absl::InvalidArgumentError(
        "data.path is not set: it names the text to train on; set data.path to a UTF-8 file or a "
        "folder of files");
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const FieldRule> FieldRules() { return kFieldRules; }
std::span<const ValidityRule> ValidityRules() { return kValidityRules; }

absl::Status Validate(const JobConfig& config) {
  RETURN_IF_ERROR(CheckText(config));
  for (const FieldRule& rule : kFieldRules) RETURN_IF_ERROR(CheckField(config, rule));
  for (const ValidityRule& rule : kValidityRules) {
    if (!rule.broken(config)) continue;
    ASSIGN_OR_RETURN(std::string message, NameAndValue(config, rule.field));
    if (rule.other_field != nullptr) {
      ASSIGN_OR_RETURN(const std::string other, NameAndValue(config, rule.other_field));
      absl::StrAppend(&message, " does not go with ", other);
    } else {
      absl::StrAppend(&message, " is not possible");
    }
    return absl::InvalidArgumentError(absl::StrCat(message, ": ", rule.reason));
  }
  return absl::OkStatus();
}

}  // namespace tug
