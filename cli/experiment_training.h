#ifndef TUG_CLI_EXPERIMENT_TRAINING_H_
#define TUG_CLI_EXPERIMENT_TRAINING_H_

// The training that an experiment runs in several ways: a job file of the user's, or a small GPT on
// a made-up text.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tug {

struct ExperimentTraining {
  std::string job_path;  // of the user's file; empty: `job_text` is to be written to one
  std::string job_text;
  std::string about;  // a sentence

  // For messages.
  std::string FileName() const { return job_path.empty() ? "the job" : job_path; }
};

// `job_file`: empty for the made-up one. Errors: those of ReadWholeFile.
absl::StatusOr<ExperimentTraining> LoadExperimentTraining(const std::string& job_file);

// The made-up text, in the folder `out`; data.path of the job that is made up.
std::string TrainingTextPath(const std::string& out);
// Errors: those of WriteFile.
absl::Status WriteTrainingText(const std::string& out);

// optimizer.warmup_steps and decay_steps, as the parts of a training of `steps` that they are of
// the job's: one that is made shorter keeps its schedule. Pure. REQUIRES: steps >= 1.
std::vector<std::string> ScheduleOverrides(const JobConfig& config, uint64_t steps);

}  // namespace tug

#endif  // TUG_CLI_EXPERIMENT_TRAINING_H_
