// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_TRAINING_H_
#define TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_TRAINING_H_

// The training that an experiment runs in several ways: the user's job file, or a small GPT on a
// made-up text.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tug {

struct ExperimentTraining {
  std::string job_path;  // of the user's file; empty: write `job_text` to a file
  std::string job_text;
  std::string about;  // a sentence

  // For messages.
  std::string FileName() const { return job_path.empty() ? "the job" : job_path; }
};

// `job_file`: empty for the built-in training. Errors: those of ReadTextFile.
absl::StatusOr<ExperimentTraining> LoadExperimentTraining(const std::string& job_file);

// Path of the made-up text in the folder `out`: data.path of the built-in job.
std::string TrainingTextPath(const std::string& out);
// Errors: those of WriteFile.
absl::Status WriteTrainingText(const std::string& out);

// optimizer.warmup_steps and decay_steps for a training of `steps` steps, in proportion to those of
// the job: a shortened training keeps its schedule. Pure. REQUIRES: steps >= 1.
std::vector<std::string> ScheduleOverrides(const JobConfig& config, uint64_t steps);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_TRAINING_H_
