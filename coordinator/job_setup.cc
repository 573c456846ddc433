#include "coordinator/job_setup.h"

#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "coordinator/job_blocks.h"
#include "coordinator/resume_check.h"
#include "coordinator/run_folder.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "google/protobuf/text_format.h"
#include "model/layout.h"
#include "proto/control_client.h"
#include "proto/job_config.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

uint64_t RandomJobId() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

absl::Status CheckNobodyRunsIn(const std::string& run_dir) {
  const absl::StatusOr<std::string> address = ReadCoordinatorAddress(run_dir);
  if (!address.ok() || !ControlClient::Connect(*address, absl::Milliseconds(300)).ok()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("a job is running in ", run_dir, ": stop it first with: tug stop ", run_dir));
}

// The run folder a checkpoint belongs to, if it is the newest there; otherwise empty.
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
      " symbols of the text: raise it, or leave it out"));
}

absl::Status CheckEveryoneEvaluates(const JobConfig& config, uint64_t windows) {
  const uint32_t virtual_workers = config.cluster().virtual_workers();
  if (windows == 0 || windows >= virtual_workers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the validation split of ", config.data().path(), " has ", windows,
                   " windows of model.context = ", config.model().context(),
                   " tokens, fewer than cluster.virtual_workers = ", virtual_workers,
                   ": give more text, a larger data.validation_fraction, or 0 for no validation"));
}

// Text to tokens; resolves config.data.
absl::Status PrepareText(const std::string& run_dir, JobConfig& config) {
  std::error_code error;
  // Nodes on this host run in other folders than ours.
  config.mutable_data()->set_path(fs::absolute(config.data().path(), error).lexically_normal());
  fs::create_directories(fs::path(run_dir) / fs::path(kTokenFile).parent_path(), error);
  const std::string token_file = absl::StrCat(run_dir, "/", kTokenFile);
  ASSIGN_OR_RETURN(const TokenFileInfo tokens, PrepareTokenFile(config.data(), token_file));
  tokens.Resolve(*config.mutable_data());
  // A text too short for the context is refused now, not by each worker.
  ASSIGN_OR_RETURN(const TokenFile file, TokenFile::Open(token_file));
  ASSIGN_OR_RETURN(const Sampler sampler, Sampler::Create(config, file));
  RETURN_IF_ERROR(CheckEveryoneEvaluates(config, sampler.validation_windows()));
  return CheckVocabulary(config);
}

}  // namespace

absl::StatusOr<RunPlan> PlanRun(const std::string& resume, const std::string& run_dir) {
  RunPlan plan;
  if (resume.empty()) return plan;
  std::error_code error;
  const std::string path = fs::absolute(resume, error).lexically_normal().string();
  ASSIGN_OR_RETURN(plan.restore, FindCheckpoint(path));
  plan.restore->folder = fs::absolute(plan.restore->folder, error).lexically_normal().string();
  // Every byte is read now, so that damage is found before any node starts.
  RETURN_IF_ERROR(CheckpointReader::Open(plan.restore->folder).status());
  if (!run_dir.empty()) return plan;
  plan.run_dir = RunOfNewest(plan.restore->folder);
  if (!plan.run_dir.empty()) RETURN_IF_ERROR(CheckNobodyRunsIn(plan.run_dir));
  return plan;
}

absl::StatusOr<CoordinatorOptions> SetUpJob(const JobConfig& config, const std::string& run_dir,
                                            const std::optional<FoundCheckpoint>& restore) {
  CoordinatorOptions job;
  job.config = config;
  job.fingerprint = Fingerprint(config);
  job.job = RandomJobId();
  job.run_dir = run_dir;

  BlockTable blocks;
  if (!config.model().external()) {
    RETURN_IF_ERROR(PrepareText(run_dir, job.config));
    blocks = ModelLayout(job.config.model(), job.config.data().resolved_symbols(),
                         static_cast<uint32_t>(job.config.data().resolved_labels_size()));
  } else if (restore.has_value()) {
    blocks = restore->manifest.blocks();  // what the workers have to declare
  }
  if (!blocks.blocks().empty()) {
    ASSIGN_OR_RETURN(job.layout, LayOut(blocks, job.config));
  }
  if (restore.has_value()) {
    RETURN_IF_ERROR(CheckResume(restore->manifest, restore->folder, job.config, blocks));
    job.start_version = restore->manifest.version();
    job.timeline = restore->manifest.timeline() + 1;
    job.restore_path = restore->folder;
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(job.config, &text);
  RETURN_IF_ERROR(WriteFile(absl::StrCat(run_dir, "/", kConfigFile), text));
  return job;
}

}  // namespace tug
