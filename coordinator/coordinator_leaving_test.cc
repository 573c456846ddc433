// SPDX-License-Identifier: Apache-2.0
// Tests nodes that are drained or ask to leave.

#include <string>

#include "coordinator/coordinator_servers_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CoordinatorLeavingTest : public CoordinatorServersTest {};

TEST_F(CoordinatorLeavingTest, AServerThatIsDrainedHandsOverAndLeaves) {
  Begin(Options(2, 1));
  const auto reply = Drain(2);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->message(), "server-1 (host, pid 2) hands over 6 segments and leaves");
  EXPECT_TRUE(StatusOf(2).draining());
  EXPECT_EQ(Drain(2)->message(), "server-1 (host, pid 2) is already draining");
  EXPECT_EQ(Drain(1).status().message(),
            "server-0 (host, pid 1) cannot leave: it is the only server: start another one first "
            "(tug server), or stop the job instead: tug stop");
  Settle();
  EXPECT_TRUE(Node(2).left);
  EXPECT_THAT(Owners(Node(3).view), ElementsAre(1));
  EXPECT_EQ(Node(3).view.lanes_size(), 2);
  EXPECT_EQ(Node(3).view.timeline(), 1u);
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_THAT(Notices(), HasSubstr("server-1 (host, pid 2) has left\n"));
  EXPECT_EQ(StatusOf(2).node_id(), 0u);
  // The job does not wait for a replacement.
  Lose(1);
  Add(SERVER);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_EQ(Node(3).view.timeline(), 2u);
}

TEST_F(CoordinatorLeavingTest, ServerLeavingWaitingJobMustBeReplaced) {
  Begin(Options(2, 1));
  Lose(1);
  Lose(2);
  ASSERT_EQ(job_->coordinator().phase(), WAITING);
  NodeUnderTest& leaver = Add(SERVER);
  leaver.said.set_leaving(true);
  const HeartbeatReply reply = leaver.Beat();
  EXPECT_TRUE(reply.leave());
  EXPECT_TRUE(reply.replace());
  Gone(leaver.id());
  EXPECT_THAT(Notices(),
              HasSubstr("server-0 (host, pid 5) has left; the job waits for a replacement"));
  Add(SERVER);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), WAITING);
  Add(SERVER, /*spare=*/true);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_EQ(Owners(Node(3).view).size(), 2u);
}

TEST_F(CoordinatorLeavingTest, AJobThatWaitsDoesNotWaitForADrainedServer) {
  Begin(Options(3, 1));
  for (const uint32_t id : {1, 2, 3}) Lose(id);
  NodeUnderTest& drained = Add(SERVER);
  EXPECT_THAT(Drain(drained.id()).status().message(), HasSubstr("it is the only server"));
  NodeUnderTest& other = Add(SERVER);
  ASSERT_TRUE(Drain(drained.id()).ok());
  other.Beat();
  const HeartbeatReply reply = drained.Beat();
  EXPECT_TRUE(reply.leave());
  EXPECT_FALSE(reply.replace());
}

TEST_F(CoordinatorLeavingTest, AJobThatWaitsForLostWorkersCountsOnNoneThatHasLeft) {
  CoordinatorOptions options = Options(1, 1);
  options.config.mutable_cluster()->set_workers(3);
  options.config.mutable_fault()->set_on_worker_loss(FaultConfig::WAIT);
  Begin(options);
  Node(4).said.set_leaving(true);
  Node(4).said.set_pausing(true);
  Settle();
  ASSERT_TRUE(Node(4).left);
  // A worker that joins for a lost one takes all orphans.
  Lose(3);
  Settle();
  NodeUnderTest& joined = Add(WORKER);
  Settle();
  EXPECT_EQ(Node(2).view.workers_size(), 2);
  EXPECT_EQ(StatusOf(2).virtual_workers_size() + StatusOf(joined.id()).virtual_workers_size(), 4);
  // Two workers are enough to roll back.
  Lose(1);
  Add(SERVER);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_EQ(Node(2).view.timeline(), 2u);
}

TEST_F(CoordinatorLeavingTest, DrainedServerLeavesOnceAllWorkersKnowTheView) {
  Begin(Options(2, 1));
  ASSERT_TRUE(Drain(2).ok());
  // Worker 4 is slow to learn of views.
  for (int i = 0; i < 12; ++i) {
    for (const uint32_t id : {1, 2, 3}) Node(id).Beat();
  }
  EXPECT_THAT(Owners(Node(3).view), ElementsAre(1));
  EXPECT_FALSE(Node(2).left);
  Node(4).Beat();
  Node(4).Beat();
  EXPECT_TRUE(Node(2).Beat().leave());
}

TEST_F(CoordinatorLeavingTest, SegmentsOfDrainedServerMoveToSpare) {
  Begin(Options(2, 2, /*spares=*/1));
  ASSERT_TRUE(Drain(1).ok());
  Settle();
  EXPECT_TRUE(Node(1).left);
  EXPECT_THAT(Owners(Node(4).view), ElementsAre(2, 3));
  EXPECT_EQ(AtRisk(), 0u);
}

TEST_F(CoordinatorLeavingTest, AWorkerThatIsDrainedFinishesItsStepFirst) {
  Begin(Options(1, 1));
  HeartbeatRequest& said = Node(3).said;
  said.set_started(true);
  said.set_clock(4);
  ASSERT_EQ(Drain(3)->message(), "worker-1 (host, pid 3) hands over its work and leaves");
  HeartbeatReply reply = Node(3).Beat();
  EXPECT_TRUE(reply.pause());
  EXPECT_EQ(reply.final_version(), 0u);
  EXPECT_FALSE(Node(2).Beat().pause());
  said.set_pausing(true);
  Node(3).Beat();
  EXPECT_FALSE(Node(1).Beat().has_next_view()) << "it is in step 4";
  said = WithStep(WithStep(said, 2, 4), 3, 4);
  Node(3).Beat();
  Node(1).SetClocks({4, 4, 5, 5});
  EXPECT_TRUE(Node(1).Beat().has_next_view());
  EXPECT_FALSE(Node(3).Beat().leave());
  Settle();
  EXPECT_TRUE(Node(3).left);
  ASSERT_EQ(Node(2).view.workers_size(), 1);
  EXPECT_THAT(Node(2).view.workers(0).virtual_workers(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Node(2).view.workers(0).start_clocks(), ElementsAre(4, 4, 5, 5));
  EXPECT_THAT(Notices(), HasSubstr("worker-1 (host, pid 3) has left\n"));
  EXPECT_EQ(Drain(2).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoordinatorLeavingTest, OthersTakeOverFromALeaverEvenWhereNobodyDoesFromALostOne) {
  CoordinatorOptions options = Options(1, 1);
  options.config.mutable_fault()->set_on_worker_loss(FaultConfig::WAIT);
  Begin(options);
  Node(3).said.set_leaving(true);
  Node(3).Beat();
  EXPECT_TRUE(StatusOf(3).draining());
  Node(3).said.set_pausing(true);
  Settle();
  EXPECT_TRUE(Node(3).left);
  ASSERT_EQ(Node(2).view.workers_size(), 1);
  EXPECT_EQ(Node(2).view.workers(0).virtual_workers_size(), 4);
  NodeUnderTest& joined = Add(WORKER);
  Settle();
  EXPECT_EQ(joined.view.workers_size(), 2);
}

TEST_F(CoordinatorLeavingTest, RefusedDrainKeepsTheNodeAndNotifiesTheUser) {
  Begin(Options(1, 1));
  Notices();
  Node(1).said.set_leaving(true);
  Settle();
  EXPECT_FALSE(Node(1).left);
  EXPECT_EQ(Notices(),
            "server-0 (host, pid 1) cannot leave: it is the only server: start another one first "
            "(tug server), or stop the job instead: tug stop\n");
  Add(SERVER);
  Settle();
  EXPECT_TRUE(Node(1).left) << "now it can";
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
}

TEST_F(CoordinatorLeavingTest, ASpareServerLeavesOnceTheOtherWasHeardOf) {
  Begin(Options(1, 1, /*spares=*/1));
  EXPECT_EQ(Drain(2)->message(), "server-1 (host, pid 2) leaves");
  EXPECT_FALSE(Node(2).Beat().leave()) << "the other one may be lost";
  Node(1).Beat();
  EXPECT_TRUE(Node(2).Beat().leave());
}

TEST_F(CoordinatorLeavingTest, BeforeTheJobBeginsWhoLeavesGivesUpItsPlace) {
  job_ = std::make_unique<JobUnderTest>(Options(1, 1));
  Add(SERVER).said.set_leaving(true);
  const HeartbeatReply reply = Node(1).Beat();
  EXPECT_TRUE(reply.leave());
  EXPECT_TRUE(reply.replace());
  Add(SERVER);
  Add(WORKER);
  Add(WORKER);
  EXPECT_TRUE(Node(2).Beat().has_view());
  Gone(1);
  EXPECT_EQ(job_->coordinator().phase(), WAITING);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
}

TEST_F(CoordinatorLeavingTest, RefusesDrainsOfJobThatNeedsAllNodes) {
  CoordinatorOptions options = Options(2, 1);
  options.config.mutable_sync()->set_policy(SyncConfig::BACKUP);
  Begin(options);
  EXPECT_EQ(Drain(9).status().code(), absl::StatusCode::kNotFound);
  for (const uint32_t id : {1, 3}) {
    EXPECT_EQ(Drain(id).status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(Drain(id).status().message()),
                HasSubstr("cannot leave: workers skip steps (sync.policy BACKUP)"));
  }
}

TEST_F(CoordinatorLeavingTest, ServersKeepTheirSegmentsWhereWorkersLetGoOfGradients) {
  CoordinatorOptions options = Options(2, 1);
  options.config.mutable_placement()->set_kind(PlacementConfig::ZERO2);
  Begin(options);
  EXPECT_THAT(std::string(Drain(1).status().message()), HasSubstr("placement.kind ZERO2"));
  EXPECT_EQ(job_->coordinator().OnRegister(job_->Request(SERVER, 77), job_->now()).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_TRUE(Drain(4).ok()) << "a worker may";
}

TEST_F(CoordinatorLeavingTest, ServersOfARecordedJobKeepTheirSegments) {
  CoordinatorOptions options = Options(2, 1);
  options.config.mutable_sync()->set_policy(SyncConfig::ASP);
  options.config.mutable_sync()->set_record(SyncConfig::ORDER);
  Begin(options);
  EXPECT_THAT(std::string(Drain(1).status().message()), HasSubstr("sync.record ORDER"));
  EXPECT_EQ(job_->coordinator().OnRegister(job_->Request(SERVER, 77), job_->now()).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_TRUE(Drain(4).ok()) << "a worker may";
}

// The loss of the node it replaces is not known yet: the job must not wait for both.
TEST_F(CoordinatorLeavingTest, AJobThatOneHasLeftDoesNotWaitForWhoCameBeforeALossWasKnown) {
  Begin(Options(2, 1));
  Node(2).said.set_leaving(true);
  Settle();
  ASSERT_TRUE(Node(2).left);
  Add(SERVER);
  Settle();
  Lose(1);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_EQ(Node(3).view.timeline(), 2u);
}

// It asks to leave while another server serves; that one turns out to be lost.
TEST_F(CoordinatorLeavingTest, LeavingServerIsReplacedIfOnlyOtherServerIsLost) {
  Begin(Options(1, 1));
  NodeUnderTest& leaver = Add(SERVER);
  leaver.said.set_leaving(true);
  EXPECT_FALSE(leaver.Beat().leave());
  Lose(1);
  ASSERT_EQ(job_->coordinator().phase(), WAITING);
  const HeartbeatReply reply = leaver.Beat();
  EXPECT_TRUE(reply.leave());
  EXPECT_TRUE(reply.replace());
}

// The other worker turns out to be lost, and the job keeps running.
TEST_F(CoordinatorLeavingTest, LastWorkerIsReplacedWhenTheOtherOneIsLost) {
  Begin(Options(1, 2));
  Node(3).said.set_leaving(true);
  Node(3).said.set_pausing(true);
  EXPECT_FALSE(Node(3).Beat().leave());
  Lose(2);
  Settle();
  EXPECT_TRUE(Node(3).left);
  EXPECT_THAT(Notices(),
              HasSubstr("worker-1 (host, pid 3) has left; the job waits for a replacement"));
}

// It holds nothing, so no node needs it. But the only other server may be lost already.
TEST_F(CoordinatorLeavingTest, LeavingServerWaitsForHeartbeatsOfRemainingServers) {
  Begin(Options(2, 2));
  NodeUnderTest& leaver = Add(SERVER, /*spare=*/true);
  leaver.said.set_leaving(true);
  for (int i = 0; i < 3; ++i) {
    Node(1).Beat();
    EXPECT_FALSE(leaver.Beat().leave());
  }
  Node(2).Beat();
  EXPECT_TRUE(leaver.Beat().leave());
}

TEST_F(CoordinatorLeavingTest, DrainedServerIsNotReplacedIfOtherServerIsLost) {
  Begin(Options(1, 1));
  NodeUnderTest& drained = Add(SERVER);
  ASSERT_TRUE(Drain(drained.id()).ok());
  Lose(1);
  const HeartbeatReply reply = drained.Beat();
  EXPECT_TRUE(reply.leave());
  EXPECT_FALSE(reply.replace());
}

}  // namespace
}  // namespace tug
