// SPDX-License-Identifier: Apache-2.0
#include "experiment/explain/what_if.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/job_config.h"
#include "experiment/explain/what_if_prediction.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

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

std::optional<WhatIf> Find(const std::vector<WhatIf>& changes, const std::string& name) {
  for (const WhatIf& change : changes) {
    if (change.name == name) return change;
  }
  return std::nullopt;
}

TEST(WhatIf, EveryRowIsAJobThatIsSimulatedAndItsNamesDiffer) {
  const JobConfig job = Job({"straggler.slowdown=2"});
  std::set<std::string> names;
  for (const WhatIf& change : WhatIfsFor(job, 2)) {
    SCOPED_TRACE(change.name);
    EXPECT_TRUE(names.insert(change.name).second);
    const absl::StatusOr<JobConfig> changed = Changed(job, change);
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_TRUE(PredictScheduling(*changed, TestbedHosts(1e8)).ok());
    EXPECT_EQ(Fingerprint(*changed) == Fingerprint(job), change.link != 1)
        << "a link is in no configuration";
  }
  EXPECT_GE(names.size(), 10u);
}

TEST(WhatIf, LeavesOutWhatAJobHasAlready) {
  EXPECT_FALSE(Find(WhatIfsFor(Job(), 1), "the slowest worker as fast as the others").has_value());
  EXPECT_FALSE(Find(WhatIfsFor(Job({"comm.push_codec={int8{}}"}), 1), "int8 push").has_value());
  EXPECT_FALSE(Find(WhatIfsFor(Job({"comm.pull_format=INT8"}), 1), "int8 pull").has_value());
  EXPECT_FALSE(Find(WhatIfsFor(Job({"comm.scheduler=FIFO"}), 1), "scheduler FIFO").has_value());
  EXPECT_FALSE(Find(WhatIfsFor(Job({"comm.partition_bytes=32768"}), 1), "partitions half as large")
                   .has_value())
      << "a partition is a segment at least";
}

TEST(WhatIf, CodecsTakeTimeWhereTheyAreNew) {
  const JobConfig job = Job();
  const std::optional<WhatIf> int8 = Find(WhatIfsFor(job, 1), "int8 push and pull");
  ASSERT_TRUE(int8.has_value());
  SimulatedHosts hosts = TestbedHosts(1e8);
  hosts.server_bytes_per_second = 1e9;
  const SimulatedHosts with = HostsWith(hosts, job, *Changed(job, *int8), *int8);
  EXPECT_GT(with.encode_bytes_per_second, 0);
  EXPECT_GT(with.decode_bytes_per_second, 0);
  EXPECT_LT(with.server_bytes_per_second, 1e9);
  EXPECT_EQ(with.link_bytes_per_second, 1e8);
}

WhatIfReport Report() {
  TracedProfile traced{.job = Job({"straggler.slowdown=2"}), .hosts = TestbedHosts(1e7)};
  traced.slowdown = 2;
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

}  // namespace
}  // namespace tug
