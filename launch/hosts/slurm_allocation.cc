// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/slurm_allocation.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr uint32_t kMaxNodes = 65536;
constexpr uint32_t kMaxTasks = 65536;  // per node

// Parses a number from 1 to `most`.
bool ReadCount(absl::string_view text, uint32_t most, uint32_t& count) {
  return !text.empty() && absl::ascii_isdigit(text[0]) && absl::SimpleAtoi(text, &count) &&
         count >= 1 && count <= most;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> ParseTasksPerNode(const std::string& text) {
  std::vector<uint32_t> tasks;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    uint32_t count = 0, times = 1;
    const size_t repeat = item.find("(x");
    bool good = true;
    if (repeat != absl::string_view::npos) {
      absl::string_view inside = item.substr(repeat + 2);
      good = absl::ConsumeSuffix(&inside, ")") && ReadCount(inside, kMaxNodes, times);
      item = item.substr(0, repeat);
    }
    good = good && ReadCount(item, kMaxTasks, count) && tasks.size() + times <= kMaxNodes;
    if (!good) {
      return absl::InvalidArgumentError(
          "SLURM_TASKS_PER_NODE is not in Slurm's format, such as 2(x3),1: run `tug launch "
          "--slurm` inside a job of sbatch or salloc");
    }
    tasks.insert(tasks.end(), times, count);
  }
  return tasks;
}

absl::StatusOr<SlurmAllocation> SlurmAllocationOf(const Environment& environment) {
  SlurmAllocation allocation;
  allocation.nodes = ValueOf(environment, "SLURM_JOB_NODELIST");
  if (allocation.nodes.empty()) {
    return absl::FailedPreconditionError(
        "not inside a Slurm allocation (SLURM_JOB_NODELIST is not set): submit with sbatch "
        "deploy/slurm/train.sbatch, or run in an salloc shell");
  }
  const std::string tasks = ValueOf(environment, "SLURM_TASKS_PER_NODE");
  ASSIGN_OR_RETURN(allocation.tasks, ParseTasksPerNode(tasks.empty() ? "1" : tasks));
  const std::string restarts = ValueOf(environment, "SLURM_RESTART_COUNT");
  if (!restarts.empty() && !absl::SimpleAtoi(restarts, &allocation.restarts)) {
    return absl::InvalidArgumentError(
        "SLURM_RESTART_COUNT is not a number: unset it, or run this inside a job of sbatch");
  }
  return allocation;
}

}  // namespace tug
