// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_SERVICE_JOB_SETUP_H_
#define TUG_COORDINATOR_SERVICE_JOB_SETUP_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/coordinator.h"

namespace tug {

// Checkpoint from which a run resumes, and its folder.
struct RunPlan {
  std::optional<FoundCheckpoint> restore;
  std::string run_dir;  // absolute; empty: to be created
};

// Resolves `resume` (a run folder, the folder of a checkpoint, or empty: a new run) and `run_dir`
// (may be empty). A run resumes in its own folder, unless `run_dir` names another, or the
// checkpoint is not the newest of its run: then it branches off into a new folder. Changes nothing.
// Valid only while no job runs in the folder: call again once it is owned. Errors: those of
// FindCheckpoint and CheckUtf8.
absl::StatusOr<RunPlan> PlanRun(const std::string& resume, const std::string& run_dir);
// Reads every byte of the plan's checkpoint, to find damage before any node starts. Errors: those
// of CheckpointReader::Open.
absl::Status VerifyPlan(const RunPlan& plan);

// Prepares a run in `run_dir`: text to tokens, layout of the model, segments (external model: none
// of these until its workers join; replay: its profile instead of a text). Writes the token file
// and config.textproto. `config`: from LoadJobConfig. Errors: of the data (naming the file), of the
// profile, of CheckUtf8, CheckResume and WeightsSource; INVALID_ARGUMENT if the configuration,
// resolved data included, exceeds kMaxJobConfigBytes. A refused run is left unchanged: it keeps its
// tokens even if the text has changed.
absl::StatusOr<CoordinatorOptions> SetUpJob(const JobConfig& config, const std::string& run_dir,
                                            const std::optional<FoundCheckpoint>& restore);

}  // namespace tug

#endif  // TUG_COORDINATOR_SERVICE_JOB_SETUP_H_
