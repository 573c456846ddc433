#ifndef TUG_COORDINATOR_JOB_SETUP_H_
#define TUG_COORDINATOR_JOB_SETUP_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/coordinator.h"

namespace tug {

// Where a run goes on from, and in which folder.
struct RunPlan {
  std::optional<FoundCheckpoint> restore;
  std::string run_dir;  // absolute; empty: to be made
};

// What `resume` (a run folder, the folder of a checkpoint, or empty: a new run) and `run_dir` (may
// be empty) ask for. A run goes on in its own folder, unless `run_dir` names another, or the
// checkpoint is not the newest of its run: then the run branches off into a new folder. Changes
// nothing, and holds only as long as no job runs there: whoever owns the folder asks again. Errors:
// those of FindCheckpoint and CheckUtf8.
absl::StatusOr<RunPlan> PlanRun(const std::string& resume, const std::string& run_dir);
// Reads every byte of its checkpoint, so that damage is found before any node starts. Errors: those
// of CheckpointReader::Open.
absl::Status VerifyPlan(const RunPlan& plan);

// Prepares a run in `run_dir`: text to tokens, layout of the model, segments (of an external model:
// none of these, until its workers come; of a replay its profile instead of a text); writes the
// token file and config.textproto. `config` as LoadJobConfig returns it. Errors: of the data
// (naming the file), of the profile, CheckUtf8's, CheckResume's, WeightsSource's; INVALID_ARGUMENT
// for a configuration of more than kMaxJobConfigBytes with all the data gave it. A run that is
// refused is left as it was: its tokens stay, whatever the text is now.
absl::StatusOr<CoordinatorOptions> SetUpJob(const JobConfig& config, const std::string& run_dir,
                                            const std::optional<FoundCheckpoint>& restore);

}  // namespace tug

#endif  // TUG_COORDINATOR_JOB_SETUP_H_
