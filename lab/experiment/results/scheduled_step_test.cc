// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/scheduled_step.h"

#include <string>
#include <utility>
#include <vector>

#include "config/job_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/replay/replay_profile.h"

namespace tug {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kWarmUp = 20;

// 40 ms of computing, 1 MB; over 200 Mbit/s 2 models take 84 ms.
JobConfig Job(const std::vector<std::string>& settings = {}) {
  auto job = ParseJobConfig(R"(
    compute: REPLAY
    replay { profile: "of-the-test" }
    cluster { servers: 2 workers: 4 virtual_workers: 4 lanes_per_server: 1 }
    train { steps: 30 }
    optimizer { clip: OFF }
    comm {
      segment_elements: 4096 partition_bytes: 16384 credit_bytes: 65536 pull_credit_bytes: 131072
      shared_memory: false
    }
  )",
                            "the test", settings);
  EXPECT_TRUE(job.ok()) << job.status();
  ReplayProfile& profile = *job->mutable_replay()->mutable_resolved_profile();
  profile.set_name("of-the-test");
  profile.set_batch(1);
  for (const auto& [name, parameters] : {std::pair{"first", 50'000}, {"last", 200'000}}) {
    ReplayBlock& block = *profile.add_blocks();
    block.set_name(name);
    block.set_parameters(static_cast<uint64_t>(parameters));
    block.set_forward_ms(5);
    block.set_backward_ms(15);
  }
  return *std::move(job);
}

Place Testbed(uint32_t hosts, const std::string& link = "200mbit") {
  Place place;
  place.mutable_testbed()->set_hosts(hosts);
  place.mutable_testbed()->set_link(link);
  return place;
}

// Steps of 0.1 s; AUTO settled at step `settled`.
RunFigures Figures(uint64_t settled) {
  RunFigures figures;
  for (uint64_t step = 1; step <= 30; ++step) {
    figures.steps.push_back({.step = step, .mean_seconds = 0.1});
  }
  figures.settled = {settled, 32768, 65536};
  return figures;
}

TEST(ScheduledStep, IsWorkedOutWhereEachNodeHasAHost) {
  for (const uint32_t hosts : {0u, 6u, 8u}) {
    const ScheduledStep step = ScheduledStepOf({}, Job(), Testbed(hosts), kWarmUp);
    ASSERT_TRUE(step.bound.has_value() && step.predicted_seconds.has_value()) << hosts;
    EXPECT_GE(step.bound->seconds, 2e6 / 23.92e6) << "2 models over a link";
    EXPECT_GT(*step.predicted_seconds, step.bound->seconds);
    EXPECT_LT(*step.predicted_seconds, 2 * step.bound->seconds);
    EXPECT_FALSE(step.bound->timeline.empty());
    EXPECT_EQ(InSequence(step.bound->timeline, TimelineSpan::Row::kPush).size(),
              InSequence(step.bound->timeline, TimelineSpan::Row::kPull).size());
  }
}

TEST(ScheduledStep, IsNotWorkedOutOfOtherPlacesAndJobs) {
  const auto nothing = [](const JobConfig& job, const Place& place) {
    const ScheduledStep step = ScheduledStepOf({}, job, place, kWarmUp);
    return !step.bound.has_value() && !step.predicted_seconds.has_value();
  };
  EXPECT_TRUE(nothing(Job(), Place())) << "no links";
  EXPECT_TRUE(nothing(Job(), Testbed(6, "none")));
  EXPECT_TRUE(nothing(Job(), Testbed(3))) << "nodes share links";
  EXPECT_TRUE(nothing(Job({"comm.impair.rate_mbit=200"}), Testbed(6)));
  EXPECT_TRUE(nothing(Job({"sync.policy=ASP"}), Testbed(6)));
  EXPECT_TRUE(nothing(Job({"placement.kind=MIXED", "cluster.servers=6"}), Testbed(0)));
}

TEST(ScheduledStep, PredictsAutoUnderWhatItSettledOnInTime) {
  const JobConfig job = Job({"comm.scheduler=AUTO"});
  const auto of = [&](const RunFigures& figures) {
    return ScheduledStepOf(figures, job, Testbed(6), kWarmUp);
  };
  // Steps in progress, and nodes that learn of it with heartbeats: 3 steps and 0.6 s.
  const ScheduledStep in_time = of(Figures(11));
  ASSERT_TRUE(in_time.settled.has_value() && in_time.predicted_seconds.has_value());
  EXPECT_EQ(in_time.settled->partition_bytes, 32768u);
  const ScheduledStep late = of(Figures(12));
  EXPECT_FALSE(late.settled.has_value());
  EXPECT_FALSE(late.predicted_seconds.has_value()) << "its steps were of several schedules";
  EXPECT_TRUE(late.bound.has_value()) << "which is of all schedules";
  EXPECT_FALSE(of({}).settled.has_value());
}

TEST(LinkLoad, IsOfTheBusiestLink) {
  const double payload = 25e6 * 1448 / 1514;
  const LinkLoad load = LinkLoadOf(Job(), Testbed(6));
  EXPECT_DOUBLE_EQ(load.model_bytes, 1e6);
  EXPECT_DOUBLE_EQ(load.compute_seconds, 0.04);
  EXPECT_DOUBLE_EQ(load.transfer_seconds.value(), 2e6 / payload);
  const Place none;
  EXPECT_DOUBLE_EQ(LinkLoadOf(Job({"comm.impair.rate_mbit=100"}), none).transfer_seconds.value(),
                   4e6 / payload)
      << "what a process sends";
  EXPECT_FALSE(LinkLoadOf(Job(), none).transfer_seconds.has_value());
  EXPECT_FALSE(LinkLoadOf(Job({"placement.kind=ZERO1", "cluster.servers=4"}), Testbed(4))
                   .transfer_seconds.has_value());
}

TEST(BlockNames, AreInForwardOrder) {
  EXPECT_THAT(BlockNamesOf(Job()), ElementsAre("first", "last"));
}

}  // namespace
}  // namespace tug
