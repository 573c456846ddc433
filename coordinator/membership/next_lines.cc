// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/next_lines.h"

#include "absl/strings/str_cat.h"
#include "base/files/shell_word.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

// `tug sample` and `tug eval` run the model of a checkpoint.
bool HasModel(const JobConfig& job) {
  return !job.model().external() && job.compute() != JobConfig::REPLAY;
}

// Random tokens have no text. The other families need a line to label or to answer.
bool WritesText(const JobConfig& job) {
  return HasModel(job) && job.model().family() == ModelConfig::DECODER &&
         job.data().random().samples() == 0;
}

bool HasValidationSplit(const JobConfig& job) {
  return HasModel(job) && job.data().validation_fraction() > 0;
}

}  // namespace

std::string ResumeCommand(const JobConfig& job, const std::string& run,
                          const std::string& continue_with) {
  const std::string own = job.model().external() ? "tug coordinator" : "tug train";
  return absl::StrCat(continue_with.empty() ? own : continue_with, " --resume ", ShellWord(run));
}

std::vector<std::string> NextLines(const JobConfig& job, const RunOutcome& outcome) {
  if (outcome.checkpoint == 0) {
    return {"no step was run and no checkpoint written: start the job again"};
  }
  std::vector<std::string> lines;
  if (!outcome.complete) {
    lines.push_back(
        absl::StrCat("continue with: ", ResumeCommand(job, outcome.run, outcome.continue_with)));
  }
  const std::string run = ShellWord(outcome.run);
  const bool trained = outcome.complete || outcome.stopped_early;
  if (trained && WritesText(job)) {
    lines.push_back(absl::StrCat("next: tug sample --from ", run));
  } else if (trained && HasValidationSplit(job)) {
    lines.push_back(absl::StrCat("next: tug eval --from ", run));
  }
  if (outcome.explainable) {
    lines.push_back(absl::StrCat("next: tug explain ", run,
                                 " shows the critical path of each step and suggests settings"));
  }
  return lines;
}

}  // namespace tug
