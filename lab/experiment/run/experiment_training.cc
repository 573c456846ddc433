// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/run/experiment_training.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/replace_file.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "lab/experiment/training_text.h"

namespace tug {
namespace {

constexpr char kTextFile[] = "text.txt";
constexpr size_t kTextBytes = 400'000;

constexpr char kLearningJob[] =
    "# A small GPT on a made-up text (text.txt).\n"
    "name: \"learning\"\n"
    "data { path: \"text.txt\" tokenizer: CHARACTER }\n"
    "model { layers: 2 width: 64 heads: 4 context: 64 }\n"
    "train { steps: 640 global_batch: 16 eval_interval: 80 eval_samples: 64 }\n"
    "optimizer { learning_rate: 2e-3 warmup_steps: 32 }\n"
    "comm { segment_elements: 16384 }\n";

}  // namespace

absl::StatusOr<ExperimentTraining> LoadExperimentTraining(const std::string& job_file) {
  if (job_file.empty()) {
    return ExperimentTraining{.job_text = kLearningJob,
                              .about = "Training of a small GPT on a made-up text."};
  }
  ASSIGN_OR_RETURN(std::string text, ReadTextFile(job_file, kMaxJobTextBytes));
  return ExperimentTraining{.job_path = job_file,
                            .job_text = std::move(text),
                            .about = absl::StrCat("Training described in ", job_file, ".")};
}

std::string TrainingTextPath(const std::string& out) { return absl::StrCat(out, "/", kTextFile); }

absl::Status WriteTrainingText(const std::string& out) {
  return WriteFile(TrainingTextPath(out), TrainingText(kTrainingTextSeed, kTextBytes));
}

std::vector<std::string> ScheduleOverrides(const JobConfig& config, uint64_t steps) {
  const auto scaled = [&](uint64_t of_job) {
    return static_cast<uint64_t>(std::llround(static_cast<double>(of_job * steps) /
                                              static_cast<double>(config.train().steps())));
  };
  const uint64_t warmup = std::min(scaled(config.optimizer().warmup_steps()), steps - 1);
  const uint64_t decay = std::max(scaled(config.optimizer().decay_steps()), warmup + 1);
  return {absl::StrCat("optimizer.warmup_steps=", warmup),
          absl::StrCat("optimizer.decay_steps=", decay)};
}

}  // namespace tug
