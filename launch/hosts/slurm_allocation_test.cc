// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/slurm_allocation.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SlurmAllocation, IsAsTheVariablesTell) {
  const SlurmAllocation allocation = SlurmAllocationOf({{"SLURM_JOB_NODELIST", "a[1-3],b"},
                                                        {"SLURM_TASKS_PER_NODE", "2(x3),1"},
                                                        {"SLURM_RESTART_COUNT", "2"}})
                                         .value();
  EXPECT_EQ(allocation.nodes, "a[1-3],b");
  EXPECT_THAT(allocation.tasks, ElementsAre(2, 2, 2, 1));
  EXPECT_EQ(allocation.restarts, 2u);
  EXPECT_EQ(SlurmAllocationOf({{"SLURM_JOB_NODELIST", "a"}}).value().restarts, 0u);
}

TEST(SlurmAllocation, SaysWhereItIsNot) {
  const absl::Status status = SlurmAllocationOf({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("sbatch"));
}

TEST(SlurmAllocation, RefusesTasksThatAreNoCounts) {
  for (const char* text : {"", "0", "-1", "x", "2(x", "2(x3", "2(x)", "2(x0)", "(x3)", "1,,2", "1,",
                           "99999999", "1(x99999999)", "2(x3)4"}) {
    EXPECT_EQ(ParseTasksPerNode(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

// Slurm's notation of any list of tasks parses to that list.
TEST(SlurmAllocation, ReadsWhatSlurmWrites) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 1000; ++i) {
    std::vector<uint32_t> tasks(1 + random() % 20);
    for (uint32_t& count : tasks) count = 1 + random() % 3;
    std::string text;
    for (size_t first = 0; first < tasks.size();) {
      size_t end = first + 1;
      while (end < tasks.size() && tasks[end] == tasks[first]) ++end;
      absl::StrAppend(&text, text.empty() ? "" : ",", tasks[first],
                      end - first > 1 ? absl::StrCat("(x", end - first, ")") : "");
      first = end;
    }
    EXPECT_EQ(ParseTasksPerNode(text).value(), tasks) << text;
  }
}

}  // namespace
}  // namespace tug
