// SPDX-License-Identifier: Apache-2.0
#include "plan/job_proposal.h"

#include <string>
#include <vector>

#include "config/job_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

JobProposal Propose(uint64_t text_bytes, uint32_t cores, double minutes = 10) {
  return ProposeJob({.name = "mine",
                     .data_path = "/data/\"my\" text",
                     .text_bytes = text_bytes,
                     .cores = cores,
                     .minutes = minutes});
}

TEST(JobProposal, FitsTextAndTime) {
  const JobProposal small = Propose(1'100'000, 2);
  EXPECT_EQ(small.width, 128);
  EXPECT_FALSE(small.pieces);
  EXPECT_NEAR(static_cast<double>(small.parameters), 0.84e6, 0.05e6);
  EXPECT_LE(small.epochs, JobProposal::kMaxEpochs);
  EXPECT_GT(Propose(1'100'000'000, 64, 600).width, 500);
  EXPECT_TRUE(Propose(10'000'000, 2).pieces);
  EXPECT_EQ(Propose(20'000, 2).width, 64) << "the smallest model";
  EXPECT_EQ(Propose(1'100'000, 1).nodes, 1);
}

// Longer training is never a smaller model or fewer steps of it.
TEST(JobProposal, GrowsWithTime) {
  for (uint64_t bytes : {10'000, 1'000'000, 100'000'000}) {
    JobProposal last = Propose(bytes, 1, 1);
    for (double minutes = 2; minutes < 10'000; minutes *= 2) {
      const JobProposal next = Propose(bytes, 4, minutes);
      EXPECT_GE(next.parameters, last.parameters);
      if (next.parameters == last.parameters) {
        EXPECT_GE(next.steps, last.steps);
      }
      last = next;
    }
  }
}

TEST(JobProposal, WritesValidJobFile) {
  for (uint64_t bytes : {1'000, 1'000'000, 1'000'000'000}) {
    for (uint32_t cores : {1, 2, 128}) {
      const JobProposal proposal = Propose(bytes, cores);
      const auto config = ParseJobConfig(JobFileText(proposal), "mine", {});
      ASSERT_TRUE(config.ok()) << config.status() << JobFileText(proposal);
      EXPECT_EQ(config->data().path(), "/data/\"my\" text");
      EXPECT_EQ(config->train().steps(), proposal.steps);
      EXPECT_EQ(config->model().width(), proposal.width);
      const auto smoke = ParseJobConfig(JobFileText(proposal), "mine",
                                        std::vector<std::string>{"train.steps=100"});
      EXPECT_TRUE(smoke.ok()) << smoke.status();
    }
  }
  EXPECT_THAT(JobFileText(Propose(1'100'000, 2)), HasSubstr("sized for 10 minutes"));
}

}  // namespace
}  // namespace tug
