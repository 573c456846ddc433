// SPDX-License-Identifier: Apache-2.0
#include "explain/what_if.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/job_config.h"
#include "explain/what_if_prediction.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A replay of two blocks on links that take longer than its computation.
JobConfig Job(const std::vector<std::string>& more = {}) {
  absl::StatusOr<JobConfig> job = ParseJobConfig(
      "name: 'job' compute: REPLAY replay { profile: 'p' } optimizer { clip: OFF } "
      "cluster { workers: 3 servers: 2 lanes_per_server: 1 } "
      "comm { segment_elements: 8192 partition_bytes: 65536 credit_bytes: 262144 }",
      "test", more);
  EXPECT_TRUE(job.ok()) << job.status();
  ReplayProfile& profile = *job->mutable_replay()->mutable_resolved_profile();
  profile.set_name("p");
  profile.set_batch(1);
  for (const char* name : {"a", "b"}) {
    ReplayBlock& block = *profile.add_blocks();
    block.set_name(name);
    block.set_parameters(100'000);
    block.set_forward_ms(5);
    block.set_backward_ms(10);
  }
  return *std::move(job);
}

TracedProfile Traced(const std::vector<std::string>& more = {}, double slowdown = 1) {
  return {.job = Job(more), .hosts = TestbedHosts(1e8), .slowdown = slowdown, .is_replay = true};
}

TracedProfile InMemory() {
  TracedProfile traced = Traced();
  traced.in_memory = true;
  traced.own_link_bytes_per_second = 1e7;
  traced.hosts.unevenness = 1;
  return traced;
}

std::optional<WhatIf> Find(const TracedProfile& traced, const std::string& name) {
  for (const WhatIf& change : WhatIfsFor(traced)) {
    if (change.name == name) return change;
  }
  return std::nullopt;
}

TEST(WhatIf, EveryRowIsAJobThatIsSimulatedAndItsNamesDiffer) {
  for (const bool in_memory : {false, true}) {
    TracedProfile traced = in_memory ? InMemory() : Traced({"straggler.slowdown=2"}, 2);
    traced.job.mutable_cluster()->set_virtual_workers(6);
    std::set<std::string> names;
    for (const WhatIf& change : WhatIfsFor(traced)) {
      SCOPED_TRACE(change.name);
      EXPECT_TRUE(names.insert(change.name).second);
      const absl::StatusOr<JobConfig> changed = Changed(traced.job, change);
      ASSERT_TRUE(changed.ok()) << changed.status();
      EXPECT_TRUE(PredictScheduling(*changed, HostsWith(traced, *changed, change)).ok());
      EXPECT_EQ(Fingerprint(*changed) == Fingerprint(traced.job), change.sets.empty());
    }
    EXPECT_GE(names.size(), 10u);
  }
}

TEST(WhatIf, LeavesOutWhatAJobHasAlready) {
  EXPECT_FALSE(Find(Traced(), "the slowest worker as fast as the others").has_value());
  EXPECT_FALSE(Find(Traced({"comm.push_codec={int8{}}"}), "int8 push").has_value());
  EXPECT_FALSE(Find(Traced({"comm.pull_format=INT8"}), "int8 pull").has_value());
  EXPECT_FALSE(Find(Traced({"comm.scheduler=FIFO"}), "scheduler FIFO").has_value());
  EXPECT_FALSE(Find(Traced({"comm.partition_bytes=32768"}), "partitions half as large").has_value())
      << "a partition is a segment at least";
  EXPECT_FALSE(Find(InMemory(), "twice the link").has_value());
  EXPECT_FALSE(Find(Traced(), "each process on a host of its own").has_value());
}

TEST(WhatIf, TwiceTheWorkersShareTheVirtualWorkersOrTheSamples) {
  TracedProfile traced = Traced({"cluster.virtual_workers=6"});
  ASSERT_TRUE(Find(traced, "twice the workers").has_value());
  EXPECT_THAT(Find(traced, "twice the workers")->sets, ElementsAre("cluster.workers=6"));
  constexpr char kHalf[] = "twice the workers, each with half the samples";
  EXPECT_FALSE(Find(traced, kHalf).has_value());
  EXPECT_FALSE(Find(Traced(), kHalf).has_value()) << "a profile has its samples";
  traced = Traced();
  traced.is_replay = false;
  traced.job.mutable_train()->set_global_batch(12);
  traced.job.mutable_train()->set_micro_batch(4);
  const std::optional<WhatIf> half = Find(traced, kHalf);
  ASSERT_TRUE(half.has_value());
  EXPECT_THAT(half->sets,
              ElementsAre("cluster.virtual_workers=6", "cluster.workers=6", "train.micro_batch=2"));
  EXPECT_EQ(half->effect.compute, 2);
  traced.job.mutable_train()->set_global_batch(9);
  EXPECT_FALSE(Find(traced, kHalf).has_value()) << "9 samples on 6 virtual workers";
}

TEST(WhatIf, FasterComputationShortensEveryPass) {
  const TracedProfile traced = Traced();
  const absl::StatusOr<JobConfig> changed =
      Changed(traced.job, *Find(traced, "computation twice as fast"));
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->replay().resolved_profile().blocks(1).forward_ms(), 2.5);
  EXPECT_EQ(changed->replay().resolved_profile().blocks(1).backward_ms(), 5);
}

TEST(WhatIf, HostsOfTheirOwnHaveUnevenLinks) {
  const TracedProfile traced = InMemory();
  const WhatIf change = *Find(traced, "each process on a host of its own");
  const SimulatedHosts hosts = HostsWith(traced, *Changed(traced.job, change), change);
  EXPECT_EQ(hosts.link_bytes_per_second, 1e7);
  EXPECT_GT(hosts.unevenness, 1);
}

TEST(WhatIf, CodecsTakeTimeWhereTheyAreNew) {
  TracedProfile traced = Traced();
  traced.hosts.server_bytes_per_second = 1e9;
  const std::optional<WhatIf> int8 = Find(traced, "int8 push and pull");
  ASSERT_TRUE(int8.has_value());
  const SimulatedHosts with = HostsWith(traced, *Changed(traced.job, *int8), *int8);
  EXPECT_GT(with.encode_bytes_per_second, 0);
  EXPECT_GT(with.decode_bytes_per_second, 0);
  EXPECT_LT(with.server_bytes_per_second, 1e9);
  EXPECT_EQ(with.link_bytes_per_second, 1e8);
}

WhatIfReport Report() {
  TracedProfile traced = Traced({"straggler.slowdown=2"}, 2);
  traced.hosts.link_bytes_per_second = 1e7;
  const absl::StatusOr<WhatIfReport> report = PredictWhatIfs(traced, 0.25);
  EXPECT_TRUE(report.ok()) << report.status();
  return *report;
}

TEST(WhatIfPrediction, HasTheFastestFirstAndSaysHowFarTheBaseIsOff) {
  const WhatIfReport report = Report();
  EXPECT_THAT(report.notes, IsEmpty());
  EXPECT_DOUBLE_EQ(report.base_error(), report.simulated_seconds / 0.25 - 1);
  ASSERT_GE(report.predictions.size(), 10u);
  double before = report.predictions.front().speed_up;
  EXPECT_GT(before, 1.2) << "links are what it waits for";
  for (const WhatIfPrediction& prediction : report.predictions) {
    EXPECT_LE(prediction.speed_up, before);
    EXPECT_DOUBLE_EQ(prediction.speed_up, report.simulated_seconds / prediction.step_seconds);
    before = prediction.speed_up;
  }
}

TEST(WhatIfPrediction, WarnsIfAnExchangeThroughMemoryTakesMuchOfAStep) {
  TracedProfile traced = InMemory();
  const auto notes = [&] { return PredictWhatIfs(traced, 0.25)->notes; };
  EXPECT_THAT(notes(), IsEmpty());
  traced.hosts.link_bytes_per_second = 1e7;
  EXPECT_THAT(notes(), ElementsAre(HasSubstr("much of a step is exchange")));
}

}  // namespace
}  // namespace tug
