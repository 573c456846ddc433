// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/job_setup.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "base/files/replace_file.h"
#include "base/status_macros.h"
#include "blocks/job_blocks.h"
#include "checkpoint/best_checkpoint.h"
#include "config/job_config.h"
#include "config/sync_mode.h"
#include "coordinator/observe/metrics_log.h"
#include "coordinator/observe/progress_line.h"
#include "coordinator/observe/run_folder.h"
#include "coordinator/service/data_summary.h"
#include "coordinator/service/replay_setup.h"
#include "coordinator/service/resume_check.h"
#include "coordinator/utf8_check.h"
#include "data/sampler.h"
#include "data/source/text_source.h"
#include "data/token_file.h"
#include "google/protobuf/text_format.h"
#include "huggingface/weights_source.h"
#include "model/layout.h"
#include "model/replay/replay_profile.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

uint64_t RandomJobId() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

// The run folder of a checkpoint if it is the newest there; else empty.
std::string RunOfNewest(const std::string& checkpoint_folder) {
  const fs::path run = fs::path(checkpoint_folder).parent_path().parent_path();
  const absl::StatusOr<FoundCheckpoint> newest = FindCheckpoint(run.string());
  std::error_code error;
  const bool same =
      newest.ok() && fs::equivalent(newest->folder, checkpoint_folder, error) && !error;
  return same ? run.string() : "";
}

absl::Status CheckVocabulary(const JobConfig& config) {
  const uint32_t vocabulary = config.model().vocabulary();
  if (vocabulary == 0 || vocabulary >= config.data().resolved_symbols()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model.vocabulary = ", vocabulary, " is less than the ", config.data().resolved_symbols(),
      " symbols of the text: raise it, or remove it"));
}

absl::Status CheckEveryoneEvaluates(const JobConfig& config, uint64_t samples) {
  const uint32_t virtual_workers = config.cluster().virtual_workers();
  if (samples == 0 || samples >= virtual_workers) return absl::OkStatus();
  if (config.data().random().samples() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.random.samples = ", config.data().random().samples(), " leaves ", samples,
        " for validation, fewer than cluster.virtual_workers = ", virtual_workers,
        ": raise it, or set data.validation_fraction: 0"));
  }
  const bool windows = TextFormOf(config.model()) == TextForm::kRunning;
  return absl::InvalidArgumentError(absl::StrCat(
      "the validation split of ", config.data().path(), " has ", samples,
      windows ? absl::StrCat(" windows of model.context = ", config.model().context(), " tokens")
              : " samples",
      ", fewer than cluster.virtual_workers = ", virtual_workers,
      ": use more text or a larger data.validation_fraction, or set it to 0 for no validation"));
}

absl::Status CheckClasses(const JobConfig& config) {
  if (config.model().family() != ModelConfig::ENCODER) return absl::OkStatus();
  const uint32_t wanted = config.model().classes(), found = DataClasses(config.data());
  if (wanted != 0 && wanted < found) {
    return absl::InvalidArgumentError(absl::StrCat("model.classes = ", wanted, " is less than the ",
                                                   found,
                                                   " labels of the text: raise it, or remove it"));
  }
  if (std::max(wanted, found) >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the data has ", found,
                                                 " class, but a classifier needs at least 2: use a "
                                                 "text with several labels, or set model.classes"));
}

// Checks that the configuration is small enough to send to nodes.
absl::Status CheckSize(const JobConfig& config) {
  if (config.ByteSizeLong() <= kMaxJobConfigBytes) return absl::OkStatus();
  const DataConfig& data = config.data();
  uint64_t labels_bytes = 0;
  for (const std::string& label : data.resolved_labels()) labels_bytes += label.size();
  const std::string limit = absl::StrCat(
      " bytes; the job configuration, which includes them and is sent to every node, is limited "
      "to ",
      kMaxJobConfigBytes, " bytes: ");
  if (labels_bytes > data.resolved_tokenizer().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", data.resolved_labels_size(), " labels of ", data.path(), " have ",
                     labels_bytes, limit, "use fewer or shorter labels"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "data.tokenizer ", DataConfig::Tokenizer_Name(data.tokenizer()), " has ",
      data.resolved_tokenizer().size(), limit,
      data.tokenizer_path().empty() ? "lower data.pieces"
                                    : "set data.tokenizer_path to a tokenizer with fewer pieces"));
}

// Nodes on this host run in other folders than this process.
void MakePathsAbsolute(JobConfig& config) {
  DataConfig& data = *config.mutable_data();
  data.set_path(AbsolutePath(data.path()));
  data.set_tokenizer_path(AbsolutePath(data.tokenizer_path()));
  TrainConfig& train = *config.mutable_train();
  train.set_init_from(AbsolutePath(train.init_from()));
}

// Converts the text to tokens and resolves config.data. If the text of a resumed run has changed,
// its token file is kept and the run refused.
absl::StatusOr<std::optional<TokenFile>> PrepareText(const std::string& run_dir,
                                                     const std::optional<FoundCheckpoint>& restore,
                                                     JobConfig& config) {
  DataConfig& data = *config.mutable_data();
  if (data.random().samples() > 0) {
    data.set_resolved_symbols(data.random().symbols());
    return std::nullopt;
  }
  std::error_code error;
  const fs::path folder = fs::path(run_dir) / fs::path(kTokenFile).parent_path();
  fs::create_directories(folder, error);
  if (error) return FileError(error.value(), "create the folder", folder.string());
  const std::string token_file = absl::StrCat(run_dir, "/", kTokenFile);
  const uint64_t trained_on =
      restore.has_value() ? restore->manifest.config().data().resolved_fingerprint() : 0;
  ASSIGN_OR_RETURN(const TokenFileInfo tokens,
                   PrepareTokenFile(data, token_file, TextFormOf(config.model()), trained_on));
  tokens.Resolve(data);
  if (restore.has_value()) {
    RETURN_IF_ERROR(CheckResumedText(restore->manifest, restore->folder, config));
  }
  ASSIGN_OR_RETURN(TokenFile file, TokenFile::Open(token_file));
  return file;
}

// "3,000 steps of 16 samples: 0.7 epochs".
std::string EpochsText(const JobConfig& config, uint64_t epoch_samples) {
  const uint64_t batch = config.train().global_batch() * uint64_t{config.sync().local_steps()};
  const double samples = static_cast<double>(config.train().steps()) * static_cast<double>(batch);
  return absl::StrCat(WithThousands(config.train().steps()), " steps of ", WithThousands(batch),
                      " samples: ", absl::StrFormat("%.3g", samples / epoch_samples), " epochs");
}

// Resolves config.data and refuses data that does not fit the model, before each worker would.
// Returns a user-facing summary of the data.
absl::StatusOr<std::string> PrepareData(const std::string& run_dir,
                                        const std::optional<FoundCheckpoint>& restore,
                                        JobConfig& config) {
  ASSIGN_OR_RETURN(const std::optional<TokenFile> file, PrepareText(run_dir, restore, config));
  RETURN_IF_ERROR(CheckSize(config));
  ASSIGN_OR_RETURN(const std::unique_ptr<Sampler> sampler,
                   MakeSampler(config, file.has_value() ? &*file : nullptr));
  RETURN_IF_ERROR(CheckEveryoneEvaluates(config, sampler->validation_samples()));
  RETURN_IF_ERROR(CheckClasses(config));
  RETURN_IF_ERROR(CheckVocabulary(config));
  if (!file.has_value()) {
    return absl::StrCat("data: ", WithThousands(config.data().random().samples()),
                        " random samples");
  }
  // After MakeSampler, which checks the lines.
  ASSIGN_OR_RETURN(const TextSource text,
                   TextSource::Open(config.data().path(), TextRulesOf(config.data())));
  const std::string notice = sampler->notice();
  return absl::StrCat(DataSummary(text, *file), "; ", EpochsText(config, sampler->train_samples()),
                      notice.empty() ? "" : "; ", notice);
}

// Opens train.init_from, replaces it by the path of the checkpoint found, and adopts its tokenizer.
// So all lanes read the same checkpoint, even if its run continues and has newer ones.
absl::StatusOr<WeightsSource> OpenInitFrom(JobConfig& config) {
  ASSIGN_OR_RETURN(WeightsSource source, WeightsSource::Open(config.train().init_from()));
  config.mutable_train()->set_init_from(source.path());
  RETURN_IF_ERROR(source.TakeTokenizer(*config.mutable_data()));
  return source;
}

// User-facing notice of residuals that a resumed job with error feedback lacks; usually empty.
std::string LackingText(const FoundCheckpoint& from, const JobConfig& config) {
  const JobConfig& before = from.manifest.config();
  if (!KeepsResiduals(config) || !KeepsResiduals(before)) return "";
  if (from.manifest.version() <= before.comm().push_codec().warmup_steps()) return "";
  const std::vector<uint32_t> kept = ResidualsIn(from.manifest);
  std::vector<uint32_t> lacking;
  for (uint32_t v = 0; v < before.cluster().virtual_workers(); ++v) {
    if (std::ranges::find(kept, v) == kept.end()) lacking.push_back(v);
  }
  if (lacking.empty()) return "";
  return absl::StrCat(from.folder, " has no error-feedback residuals of virtual worker",
                      lacking.size() == 1 ? " " : "s ", absl::StrJoin(lacking, ", "),
                      ": the job continues without them");
}

// Reads the past evaluations and the best checkpoint of a run resumed in its folder.
void RecallEvaluations(const std::string& run_dir, CoordinatorOptions& job) {
  const auto evals = ReadEvaluations(absl::StrCat(run_dir, "/", kMetricsFile));
  if (evals.ok()) {
    for (const EvalMetrics& eval : *evals) {
      if (eval.version <= job.start.version) job.past_evals.push_back(eval);
    }
  }
  if (const auto best = ReadBest(run_dir); best.ok()) job.best = *best;
}

// Appends to a user-facing notice; no effect if `text` is empty.
void AddNotice(const std::string& text, std::string& notice) {
  if (!text.empty()) absl::StrAppend(&notice, notice.empty() ? "" : "; ", text);
}

// Lets a job continue from a checkpoint, and adds notices about what differs from it.
absl::Status ContinueFrom(const FoundCheckpoint& from, const BlockTable& blocks,
                          const std::string& run_dir, CoordinatorOptions& job) {
  RETURN_IF_ERROR(CheckResume(from.manifest, from.folder, job.config, blocks));
  const Manifest& manifest = from.manifest;
  job.start = {.number = manifest.timeline() + 1,
               .version = manifest.version(),
               .restore_path = from.folder,
               .clocks = {manifest.clocks().begin(), manifest.clocks().end()},
               .residuals = ResidualsIn(manifest)};
  AddNotice(LackingText(from, job.config), job.data_notice);
  job.changed_settings = ChangedSettings(manifest, job.config);
  if (!job.changed_settings.empty()) {
    AddNotice(absl::StrCat("changed settings: ", absl::StrJoin(job.changed_settings, ", ")),
              job.data_notice);
  }
  RecallEvaluations(run_dir, job);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunPlan> PlanRun(const std::string& resume, const std::string& run_dir) {
  RunPlan plan;
  if (resume.empty()) return plan;
  const std::string path = AbsolutePath(resume);
  RETURN_IF_ERROR(CheckUtf8("--resume", path));
  ASSIGN_OR_RETURN(plan.restore, FindCheckpoint(path));
  if (!run_dir.empty()) return plan;
  // `resume` may name the run folder. Do not check whether this checkpoint is still the newest: its
  // job may commit a newer one meanwhile.
  const fs::path run = fs::path(plan.restore->folder).parent_path().parent_path();
  std::error_code error;
  plan.run_dir =
      fs::equivalent(run, path, error) ? run.string() : RunOfNewest(plan.restore->folder);
  return plan;
}

absl::Status VerifyPlan(const RunPlan& plan) {
  if (!plan.restore.has_value()) return absl::OkStatus();
  return CheckpointReader::Open(plan.restore->folder).status();
}

absl::StatusOr<CoordinatorOptions> SetUpJob(const JobConfig& config, const std::string& run_dir,
                                            const std::optional<FoundCheckpoint>& restore) {
  CoordinatorOptions job;
  job.config = config;
  job.fingerprint = Fingerprint(config);
  job.job = RandomJobId();
  job.run_dir = run_dir;
  MakePathsAbsolute(job.config);
  RETURN_IF_ERROR(CheckUtf8(job.config));

  // Compare as much as possible before reading the text: a refused run must be left unchanged.
  if (restore.has_value() && config.compute() != JobConfig::REPLAY) {
    RETURN_IF_ERROR(CheckResumedSettings(restore->manifest, restore->folder, config));
  }
  // A resumed run keeps its original tokenizer, even if that one's files have changed.
  if (restore.has_value() &&
      restore->manifest.config().data().tokenizer() == config.data().tokenizer()) {
    job.config.mutable_data()->set_resolved_tokenizer(
        restore->manifest.config().data().resolved_tokenizer());
  }
  std::optional<WeightsSource> source;
  if (!restore.has_value() && !config.train().init_from().empty()) {
    ASSIGN_OR_RETURN(source, OpenInitFrom(job.config));
  }
  BlockTable blocks;
  if (config.compute() == JobConfig::REPLAY) {
    RETURN_IF_ERROR(ResolveReplay(job.config));
    job.data_notice = ReplayText(job.config.replay());
    blocks = ReplayLayout(job.config.replay().resolved_profile());
  } else if (!config.model().external()) {
    ASSIGN_OR_RETURN(job.data_notice, PrepareData(run_dir, restore, job.config));
    blocks = ModelLayout(job.config.model(), job.config.data().resolved_symbols(),
                         DataClasses(job.config.data()));
  } else if (restore.has_value()) {
    blocks = restore->manifest.blocks();  // what workers must declare
  }
  if (!blocks.blocks().empty()) {
    ASSIGN_OR_RETURN(job.layout, LayOut(blocks, job.config));
  }
  if (restore.has_value()) {
    RETURN_IF_ERROR(ContinueFrom(*restore, blocks, run_dir, job));
  } else if (source.has_value()) {
    RETURN_IF_ERROR(source->Check(job.config, blocks));
    RETURN_IF_ERROR(source->CheckValues(blocks));
    AddNotice(source->Notice(blocks), job.data_notice);
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(job.config, &text);
  RETURN_IF_ERROR(WriteFile(absl::StrCat(run_dir, "/", kConfigFile), text));
  return job;
}

}  // namespace tug
