// SPDX-License-Identifier: Apache-2.0
// Tests how a job ends where every push is an update.

#include <numeric>

#include "coordinator/coordinator_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;

CoordinatorOptions Asp(uint64_t steps) {
  CoordinatorOptions options = JobUnderTest::Options(1, 2, steps, 0, 2);
  options.config.mutable_sync()->set_policy(SyncConfig::ASP);
  options.config.mutable_fault()->set_heartbeat_ms(200);
  return options;
}

// Worker `id`, the only one of virtual worker `id` - 2, has done steps `from` to `to` - 1 and has
// begun step `to`.
HeartbeatRequest Worked(const JobUnderTest& job, uint32_t id, uint64_t from, uint64_t to) {
  HeartbeatRequest beat = job.ReadyBeat(id);
  for (uint64_t clock = from; clock < to; ++clock) {
    beat = WithStep(beat, id - 2, clock);
    beat.mutable_steps()->rbegin()->set_step_seconds(id == 2 ? 1 : 3);
  }
  beat.set_clock(to);
  return beat;
}

TEST(CoordinatorEnd, AspAssignsLastStepsOnceAllWorkersHavePaused) {
  JobUnderTest job(Asp(10));
  job.Run(1, 2);
  HeartbeatReply reply = job.Send(Worked(job, 2, 0, 5));
  EXPECT_FALSE(reply.pause());
  EXPECT_EQ(reply.final_version(), 0u);
  job.Send(Worked(job, 3, 0, 2));
  EXPECT_EQ(job.Take<StepCompleted>().size(), 3u) << "7 pushes are 3 steps";

  HeartbeatRequest fast = Worked(job, 2, 5, 9);
  EXPECT_TRUE(job.Send(fast).pause());
  fast.set_pausing(true);
  EXPECT_TRUE(job.Send(fast).pause());
  HeartbeatRequest slow = Worked(job, 3, 2, 3);
  slow.set_pausing(true);
  reply = job.Send(slow);
  EXPECT_FALSE(reply.pause());
  EXPECT_EQ(reply.final_version(), 10u);
  // 14 of 20 pushes have begun; of the other 6 the fast one takes three times as many.
  EXPECT_THAT(reply.final_clocks(), ElementsAre(15, 5));
  EXPECT_THAT(job.Send(job.ReadyBeat(1)).final_clocks(), ElementsAre(15, 5));
}

TEST(CoordinatorEnd, AStopWhereEveryPushIsAnUpdateEndsAtTheNextWholeStep) {
  JobUnderTest job(Asp(1000));
  job.Run(1, 2);
  HeartbeatRequest fast = Worked(job, 2, 0, 6), slow = Worked(job, 3, 0, 1);
  job.Send(fast);
  job.Send(slow);
  job.coordinator().OnStop(job.now());
  fast.set_pausing(true);
  slow.set_pausing(true);
  job.Send(fast);
  const HeartbeatReply reply = job.Send(slow);
  EXPECT_EQ(reply.final_version(), 5u) << "7 + 2 pushes begun";
  EXPECT_EQ(std::accumulate(reply.final_clocks().begin(), reply.final_clocks().end(), 0ull), 10u);
}

TEST(CoordinatorEnd, ClocksOfACheckpointAreInItsManifestAndARunGoesOnFromThem) {
  CoordinatorOptions options = Asp(10);
  options.start = {.number = 2, .version = 4, .restore_path = "/step-4", .clocks = {6, 1}};
  JobUnderTest job(std::move(options));
  job.Join(SERVER, 1);
  job.Join(WORKER, 101);
  job.Join(WORKER, 102);
  const View view = job.Send(job.Beat(2)).view();
  EXPECT_THAT(view.workers(0).start_clocks(), ElementsAre(6));
  EXPECT_THAT(view.workers(1).start_clocks(), ElementsAre(1));
  for (uint32_t id = 1; id <= 3; ++id) job.Send(job.ReadyBeat(id));

  HeartbeatRequest parts = WithPart(WithPart(job.ReadyBeat(1), 0, 5), 1, 5);
  for (const uint64_t clock : {7, 3}) parts.mutable_parts(0)->add_clocks(clock);
  for (const uint64_t clock : {8, 2}) parts.mutable_parts(1)->add_clocks(clock);
  job.Send(parts);
  const auto commits = job.Take<CommitCheckpointAction>();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_THAT(commits[0].manifest.clocks(), ElementsAre(7, 2));
  EXPECT_EQ(commits[0].manifest.timeline(), 2u);
}

TEST(CoordinatorEnd, AStopDoesNotWaitUntilWhoWasTakenOverHasCaughtUp) {
  JobUnderTest job(Asp(1000));
  job.Run(1, 2);
  job.Send(Worked(job, 2, 0, 500));
  job.Send(Worked(job, 3, 0, 10));
  job.coordinator().OnGone(3, kJob, job.now());
  HeartbeatRequest server = job.ReadyBeat(1);
  server.set_clocks_of_view(2);
  for (const uint64_t clock : {500, 10}) server.add_clocks(clock);
  job.Send(server);
  job.coordinator().OnStop(job.now());
  HeartbeatRequest worker = Worked(job, 2, 500, 500);
  worker.set_known_view(2);
  worker.set_started(true);
  worker.set_pausing(true);
  const HeartbeatReply reply = job.Send(worker);
  EXPECT_EQ(reply.final_version(), 256u);
  EXPECT_THAT(reply.final_clocks(), ElementsAre(501, 11));
}

class ResumedTest : public ::testing::Test {
 protected:
  // Resumes at step 4 with start clocks 6 and 1: each segment has 8 pushes, so one may have clock 6
  // of the first virtual worker, or clock 1 of the second.
  ResumedTest() : job_(Resumed()) {
    job_.Run(1, 2);
    EXPECT_EQ(job_.Send(job_.ReadyBeat(2)).final_version(), 0u);
  }
  static CoordinatorOptions Resumed() {
    CoordinatorOptions options = Asp(10);
    options.start = {.number = 2, .version = 4, .restore_path = "/step-4", .clocks = {6, 1}};
    return options;
  }
  HeartbeatReply StopWhenPausing(std::vector<HeartbeatRequest> workers) {
    job_.coordinator().OnStop(job_.now());
    HeartbeatReply reply;
    for (HeartbeatRequest& worker : workers) {
      worker.set_pausing(true);
      reply = job_.Send(worker);
    }
    return reply;
  }
  JobUnderTest job_;
};

TEST_F(ResumedTest, AStopBeforeTheFirstStepEndsItThere) {
  StopWhenPausing({job_.ReadyBeat(2), job_.ReadyBeat(3)});
  EXPECT_EQ(job_.coordinator().phase(), DONE);
}

TEST_F(ResumedTest, StopKeepsBegunStepsAndAppliedPushes) {
  HeartbeatRequest begun = Worked(job_, 3, 1, 1);
  begun.set_started(true);
  const HeartbeatReply reply = StopWhenPausing({job_.ReadyBeat(2), begun});
  EXPECT_EQ(job_.coordinator().phase(), RUNNING);
  ASSERT_EQ(reply.final_clocks_size(), 2);
  EXPECT_GE(reply.final_version(), 5u);
  EXPECT_GE(reply.final_clocks(0), 7u);
  EXPECT_GE(reply.final_clocks(1), 2u);
  EXPECT_EQ(reply.final_clocks(0) + reply.final_clocks(1), 2 * reply.final_version());
}

TEST(CoordinatorEnd, BelievesNoClockThatNobodyCanHaveBegun) {
  JobUnderTest job(Asp(10));
  job.Run(1, 2);
  HeartbeatRequest liar = Worked(job, 2, 500, 501);
  liar.set_clock(1ull << 62);
  EXPECT_FALSE(job.Send(liar).pause());
  EXPECT_TRUE(job.Take<StepCompleted>().empty());

  HeartbeatRequest fast = Worked(job, 2, 0, 9), slow = Worked(job, 3, 0, 3);
  fast.set_pausing(true);
  slow.set_pausing(true);
  for (int i = 0; i < 2; ++i) {
    job.Send(fast);
    job.Send(slow);
  }
  const HeartbeatReply reply = job.Send(slow);
  EXPECT_EQ(reply.final_version(), 10u);
  EXPECT_EQ(std::accumulate(reply.final_clocks().begin(), reply.final_clocks().end(), 0ull), 20u);
}

}  // namespace
}  // namespace tug
