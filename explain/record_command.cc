// SPDX-License-Identifier: Apache-2.0
#include "explain/record_command.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/files/shell_word.h"
#include "coordinator/observe/run_folder.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

// `--trace` records 20 steps.
constexpr uint64_t kTracedSteps = 20;
constexpr uint64_t kStepsAfter = 10;  // until all nodes have sent their spans

// Steps of a run that records `first` and those after it, and what becomes invalid otherwise.
std::vector<std::string> ShortRun(const JobConfig& config) {
  const uint64_t steps = config.trace().first_step() + kTracedSteps + kStepsAfter;
  std::vector<std::string> sets = {absl::StrCat("train.steps=", steps)};
  if (config.optimizer().warmup_steps() >= steps) sets.push_back("optimizer.warmup_steps=0");
  return sets;
}

std::vector<std::string> Program(const JobConfig& config, const std::string& job_file,
                                 size_t hosts) {
  if (config.model().external()) return {"tug", "coordinator", job_file};  // as before, by hand
  if (hosts > 1) return {"tug", "launch", job_file, "--hosts", "HOSTS"};
  return {"tug", "train", job_file};
}

}  // namespace

std::string RecordCommand(const std::string& run_dir, const JobConfig& config, size_t hosts,
                          const std::vector<std::string>& sets) {
  std::vector<std::string> words = Program(config, absl::StrCat(run_dir, "/", kConfigFile), hosts);
  for (const std::vector<std::string>& some : {sets, ShortRun(config)}) {
    for (const std::string& set : some) words.insert(words.end(), {"--set", set});
  }
  words.push_back("--trace");
  return ShellCommand(words);
}

}  // namespace tug
