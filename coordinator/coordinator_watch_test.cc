// SPDX-License-Identifier: Apache-2.0
// Tests what the coordinator keeps for display, and does not journal.
#include <gtest/gtest.h>

#include "coordinator/coordinator_test_support.h"
#include "coordinator/journal.h"

namespace tug {
namespace {

HeartbeatRequest WatchedBeat(const JobUnderTest& job, uint32_t id, uint64_t socket_bytes) {
  HeartbeatRequest beat = job.Beat(id);
  beat.set_known_view(1);
  beat.mutable_activity()->set_doing(NodeActivity::WAITING_FOR_WIRE);
  beat.mutable_activity()->set_seconds(0.5);
  beat.mutable_counters()->set_socket_bytes(socket_bytes);
  return beat;
}

NodeStatus StatusOf(JobUnderTest& job, uint32_t id) {
  const StatusReply status = job.coordinator().OnStatus(job.now());
  for (const NodeStatus& node : status.nodes()) {
    if (node.node_id() == id) return node;
  }
  return {};
}

TEST(CoordinatorWatch, TellsWhatANodeIsAtAndWhatItSends) {
  JobUnderTest job(1, 1);
  job.Run(1, 1);
  job.Send(WatchedBeat(job, 2, 1'000'000));
  EXPECT_EQ(StatusOf(job, 2).activity().doing(), NodeActivity::WAITING_FOR_WIRE);
  job.Pass(absl::Milliseconds(500));
  EXPECT_DOUBLE_EQ(StatusOf(job, 2).activity().seconds(), 0.5) << "as it was when it was heard";
  job.Pass(absl::Milliseconds(1500));
  HeartbeatRequest beat = WatchedBeat(job, 2, 5'000'000);
  beat.mutable_counters()->set_shared_memory_bytes(6'000'000);
  job.Send(beat);
  EXPECT_DOUBLE_EQ(StatusOf(job, 2).socket_bytes_per_second(), 2e6);
  EXPECT_DOUBLE_EQ(StatusOf(job, 2).shared_memory_bytes_per_second(), 3e6);
}

TEST(CoordinatorWatch, SaysWhetherTheJobCanHaveStaleness) {
  for (const auto policy :
       {SyncConfig::BSP, SyncConfig::BACKUP, SyncConfig::SSP, SyncConfig::ASP}) {
    CoordinatorOptions options = JobUnderTest::Options(1, 1, 10, 0, 1);
    options.config.mutable_sync()->set_policy(policy);
    JobUnderTest job(options);
    const bool has_staleness = policy == SyncConfig::SSP || policy == SyncConfig::ASP;
    EXPECT_EQ(job.coordinator().OnStatus(job.now()).has_staleness(), has_staleness) << policy;
  }
}

TEST(CoordinatorWatch, TellsTheLastStepThatAWorkerReported) {
  JobUnderTest job(1, 1);
  job.Run(1, 1);
  HeartbeatRequest beat = job.Beat(2);
  beat.set_known_view(1);
  beat.set_started(true);
  beat.set_clock(3);
  for (const uint64_t clock : {1u, 2u, 0u}) {
    StepReport& report = *beat.add_steps();
    report.set_clock(clock);
    report.set_step_seconds(10 + static_cast<double>(clock));
    report.set_compute_seconds(8);
    report.set_wait_seconds(2);
    report.set_targets(1);
  }
  job.Send(beat);
  const NodeStatus node = StatusOf(job, 2);
  EXPECT_EQ(node.clock(), 3u);
  EXPECT_EQ(node.step_seconds(), 12);
  EXPECT_EQ(node.compute_seconds(), 8);
  EXPECT_EQ(node.wait_seconds(), 2);
}

TEST(CoordinatorWatch, KeepsNothingOfItInTheJournal) {
  JobUnderTest job(1, 1);
  job.Run(1, 1);
  MemoryJournal journal;
  job.coordinator().KeepJournal(&journal);
  for (int i = 0; i < 5; ++i) {
    job.Pass(absl::Seconds(1));
    job.Send(WatchedBeat(job, 1, 1000));
    job.Send(WatchedBeat(job, 2, 1000));
  }
  EXPECT_EQ(journal.position(), 0u);
}

}  // namespace
}  // namespace tug
