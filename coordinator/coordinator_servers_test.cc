// Servers that are lost, join, stand by and leave while a job runs, and workers that leave.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/coordinator_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Two lanes a server, twelve segments of 10 bytes, four virtual workers, two workers.
class CoordinatorServersTest : public ::testing::Test {
 protected:
  static CoordinatorOptions Options(uint32_t servers, uint32_t replicas, uint32_t spares = 0) {
    CoordinatorOptions options = JobUnderTest::Options(servers, 2, 10, 0, 4);
    options.config.mutable_sync()->set_replicas(replicas);
    options.config.mutable_cluster()->set_spare_servers(spares);
    options.config.mutable_fault()->set_max_rollbacks(1);
    options.layout.segment_bytes.assign(kSegments, 10);
    return options;
  }
  static constexpr uint32_t kSegments = 12;

  // Servers, spares and workers join and run: ids in that order, from 1.
  void Begin(const CoordinatorOptions& options) {
    job_ = std::make_unique<JobUnderTest>(options);
    const ClusterConfig& cluster = options.config.cluster();
    for (uint32_t i = 0; i < cluster.servers(); ++i) Add(SERVER);
    for (uint32_t i = 0; i < cluster.spare_servers(); ++i) Add(SERVER, /*spare=*/true);
    for (uint32_t i = 0; i < cluster.workers(); ++i) Add(WORKER);
    Settle();
    ASSERT_EQ(job_->coordinator().phase(), RUNNING);
  }
  NodeUnderTest& Add(NodeKind kind, bool spare = false) {
    const uint32_t id = job_->Join(kind, 1 + nodes_.size(), spare);
    nodes_.push_back(std::make_unique<NodeUnderTest>(*job_, id));
    return *nodes_.back();
  }
  NodeUnderTest& Node(uint32_t id) { return *nodes_.at(id - 1); }
  bool Lives(uint32_t id) const { return !dead_.contains(id) && !nodes_.at(id - 1)->left; }

  // Everybody beats until nothing happens any more.
  void Settle() {
    for (int i = 0; i < 12; ++i) {
      for (const auto& node : nodes_) {
        if (!Lives(node->id())) continue;
        node->Beat();
        if (node->left) Gone(node->id());
      }
    }
  }
  void Gone(uint32_t id) { job_->coordinator().OnGone(id, kJob, job_->now()); }
  void Lose(uint32_t id) {
    dead_.insert(id);
    Gone(id);
  }
  std::string Notices() {
    std::string all;
    for (const NoticeAction& notice : job_->Take<NoticeAction>()) all += notice.text + "\n";
    return all;
  }
  NodeStatus StatusOf(uint32_t id) const {
    const StatusReply status = job_->coordinator().OnStatus(job_->now());
    for (const NodeStatus& node : status.nodes()) {
      if (node.node_id() == id) return node;
    }
    return NodeStatus();
  }
  uint32_t AtRisk() const { return job_->coordinator().OnStatus(job_->now()).segments_at_risk(); }
  absl::StatusOr<DrainReply> Drain(uint32_t id) {
    return job_->coordinator().OnDrain(id, job_->now());
  }
  // Servers that own segments in the view.
  static std::set<uint32_t> Owners(const View& view) {
    std::set<uint32_t> owners;
    for (const uint32_t lane : view.lane_of_segment()) {
      owners.insert(view.lanes(static_cast<int>(lane)).server_node_id());
    }
    return owners;
  }

  std::unique_ptr<JobUnderTest> job_;
  std::vector<std::unique_ptr<NodeUnderTest>> nodes_;
  std::set<uint32_t> dead_;
};

TEST_F(CoordinatorServersTest, AViewSaysWhoKeepsCopies) {
  Begin(Options(2, 2));
  const View& view = Node(3).view;
  EXPECT_EQ(view.placement(), 1u);
  ASSERT_EQ(view.copies_size(), 1);
  for (int id = 0; id < static_cast<int>(kSegments); ++id) {
    const uint32_t copy = view.copies(0).lane_of_segment(id);
    ASSERT_GT(copy, 0u);
    EXPECT_NE(view.lanes(static_cast<int>(copy - 1)).server_node_id(),
              view.lanes(static_cast<int>(view.lane_of_segment(id))).server_node_id());
  }
  EXPECT_EQ(job_->coordinator().OnStatus(job_->now()).segments(), kSegments);
  EXPECT_EQ(StatusOf(1).segments(), 6u);
  EXPECT_EQ(StatusOf(1).copies(), 6u);
  EXPECT_EQ(StatusOf(1).copies_missing(), 0u);
  EXPECT_EQ(AtRisk(), 0u);
}

TEST_F(CoordinatorServersTest, CopiesServeForALostServerInTheSameTimeline) {
  Begin(Options(2, 2));
  Notices();
  const View before = Node(3).view;
  Lose(2);
  EXPECT_EQ(Notices(),
            "server 2 (host, pid 2) was lost: its connection was closed; server 1 serves the "
            "copies of its 6 segments\n");
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  Node(1).SetClocks({3, 3, 2, 3});
  EXPECT_FALSE(Node(3).Beat().has_view()) << "servers first";
  const View next = Node(1).Beat().next_view();
  EXPECT_EQ(next.number(), 2u);
  EXPECT_EQ(next.placement(), 2u);
  EXPECT_EQ(next.timeline(), 1u);
  EXPECT_EQ(next.lanes_size(), 2);
  EXPECT_EQ(next.lane_of_segment_size(), static_cast<int>(kSegments));
  EXPECT_EQ(next.copies_size(), 0);
  EXPECT_EQ(next.blocks().SerializeAsString(), before.blocks().SerializeAsString());
  Settle();
  const View& view = Node(3).view;
  EXPECT_EQ(view.number(), 2u);
  EXPECT_EQ(view.placement(), 2u);
  EXPECT_EQ(view.timeline(), 1u);
  EXPECT_THAT(Owners(view), ElementsAre(1));
  EXPECT_THAT(view.workers(1).start_clocks(), ElementsAre(2, 3));
  EXPECT_EQ(AtRisk(), kSegments);
}

TEST_F(CoordinatorServersTest, SegmentsWithoutAWholeCopyMakeTheJobGoBack) {
  job_ = std::make_unique<JobUnderTest>(Options(2, 2));
  for (int i = 0; i < 2; ++i) Add(SERVER);
  for (int i = 0; i < 2; ++i) Add(WORKER);
  Node(1).copies = Node(2).copies = false;
  Settle();
  ASSERT_EQ(job_->coordinator().phase(), RUNNING);
  Lose(2);
  EXPECT_EQ(job_->coordinator().phase(), WAITING);
  const std::string notices = Notices();
  EXPECT_THAT(notices, HasSubstr("server 2 (host, pid 2) had the only whole copy of 6 segments"));
  EXPECT_THAT(notices, HasSubstr("the job goes back to step 0"));
  Add(SERVER);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_EQ(Node(3).view.timeline(), 2u);
}

TEST_F(CoordinatorServersTest, ASpareServerIsFilledInPlaceOfALostOne) {
  Begin(Options(2, 2, /*spares=*/1));
  EXPECT_TRUE(StatusOf(3).spare());
  EXPECT_EQ(Node(3).view.number(), 0u) << "it stands by";
  Notices();
  Lose(1);
  Node(2).copies = Node(3).copies = false;
  Settle();
  EXPECT_FALSE(StatusOf(3).spare());
  EXPECT_EQ(StatusOf(2).segments(), kSegments);
  EXPECT_EQ(StatusOf(3).segments(), 0u);
  // Those that it is to own, and those that it is to have a copy of.
  EXPECT_EQ(StatusOf(3).copies(), kSegments);
  EXPECT_EQ(StatusOf(3).copies_missing(), kSegments);
  EXPECT_EQ(AtRisk(), kSegments);
  EXPECT_THAT(Notices(), Not(HasSubstr("again")));
  Node(2).copies = Node(3).copies = true;
  Settle();
  EXPECT_EQ(StatusOf(2).segments(), 6u);
  EXPECT_EQ(StatusOf(2).copies(), 6u);
  EXPECT_EQ(StatusOf(3).segments(), 6u);
  EXPECT_EQ(AtRisk(), 0u);
  EXPECT_THAT(Notices(), HasSubstr("all segments have 2 copies again"));
  EXPECT_EQ(Node(4).view.timeline(), 1u);
  EXPECT_THAT(Owners(Node(4).view), ElementsAre(2, 3));
  // And now the other one.
  Lose(2);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_THAT(Owners(Node(4).view), ElementsAre(3));
}

TEST_F(CoordinatorServersTest, WithoutCopiesASpareServerLetsTheJobGoBackAtOnce) {
  Begin(Options(1, 1, /*spares=*/1));
  Lose(1);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_EQ(Node(3).view.timeline(), 2u);
  EXPECT_THAT(Owners(Node(3).view), ElementsAre(2));
}

TEST_F(CoordinatorServersTest, AJobBeginsWithASpareServerIfAllAreThereThatItWasGiven) {
  job_ = std::make_unique<JobUnderTest>(Options(2, 1, /*spares=*/1));
  Add(WORKER);
  Add(WORKER);
  Add(SERVER);
  Add(SERVER, /*spare=*/true);
  Settle();
  EXPECT_EQ(Node(1).view.number(), 0u) << "another one is to come";
  Add(SERVER, /*spare=*/true);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_THAT(Owners(Node(1).view), ElementsAre(3, 4));
}

TEST_F(CoordinatorServersTest, AServerThatJoinsGetsItsPartOfTheSegments) {
  Begin(Options(1, 1));
  NodeUnderTest& joined = Add(SERVER);
  const View next = joined.Beat().next_view();
  EXPECT_EQ(next.number(), 2u);
  EXPECT_EQ(next.placement(), 2u);
  EXPECT_EQ(next.lanes_size(), 4);
  ASSERT_EQ(next.copies_size(), 1);
  EXPECT_THAT(Owners(next), ElementsAre(1)) << "it has nothing yet";
  Settle();
  const View& view = Node(2).view;
  EXPECT_EQ(view.placement(), 3u);
  EXPECT_EQ(view.copies_size(), 0);
  EXPECT_THAT(Owners(view), ElementsAre(1, joined.id()));
  EXPECT_EQ(StatusOf(joined.id()).segments(), 6u);
  EXPECT_EQ(joined.view.number(), view.number());
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  const uint32_t number = view.number();
  Settle();
  EXPECT_EQ(Node(2).view.number(), number) << "it ends";
}

TEST_F(CoordinatorServersTest, AServerThatIsDrainedHandsOverAndLeaves) {
  Begin(Options(2, 1));
  const auto reply = Drain(2);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->message(), "server 2 (host, pid 2) hands over 6 segments and leaves");
  EXPECT_TRUE(StatusOf(2).draining());
  EXPECT_EQ(Drain(2)->message(), "server 2 (host, pid 2) is about to leave already");
  EXPECT_EQ(Drain(1).status().message(),
            "server 1 (host, pid 1) cannot leave: it is the only server: start another one first "
            "(tug server), or end the job with: tug stop");
  Settle();
  EXPECT_TRUE(Node(2).left);
  EXPECT_THAT(Owners(Node(3).view), ElementsAre(1));
  EXPECT_EQ(Node(3).view.lanes_size(), 2);
  EXPECT_EQ(Node(3).view.timeline(), 1u);
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_THAT(Notices(), HasSubstr("server 2 (host, pid 2) has left\n"));
  EXPECT_EQ(StatusOf(2).node_id(), 0u);
  // Nobody waits for another one in its place.
  Lose(1);
  Add(SERVER);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_EQ(Node(3).view.timeline(), 2u);
}

TEST_F(CoordinatorServersTest, WhoLeavesAJobThatWaitsForItIsToBeReplaced) {
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
  EXPECT_THAT(Notices(), HasSubstr("server 5 (host, pid 5) has left; the job waits for another one "
                                   "in its place"));
  Add(SERVER);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), WAITING);
  Add(SERVER, /*spare=*/true);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_EQ(Owners(Node(3).view).size(), 2u);
}

TEST_F(CoordinatorServersTest, AJobThatWaitsDoesNotWaitForADrainedServer) {
  Begin(Options(2, 1));
  Lose(1);
  Lose(2);
  NodeUnderTest& drained = Add(SERVER);
  EXPECT_THAT(Drain(drained.id()).status().message(), HasSubstr("it is the only server"));
  job_->coordinator().OnRegister(job_->Request(SERVER, 9), job_->now()).IgnoreError();
  ASSERT_TRUE(Drain(drained.id()).ok());
  const HeartbeatReply reply = drained.Beat();
  EXPECT_TRUE(reply.leave());
  EXPECT_FALSE(reply.replace());
}

TEST_F(CoordinatorServersTest, AJobThatWaitsForLostWorkersCountsOnNoneThatHasLeft) {
  CoordinatorOptions options = Options(1, 1);
  options.config.mutable_cluster()->set_workers(3);
  options.config.mutable_fault()->set_on_worker_loss(FaultConfig::WAIT);
  Begin(options);
  Node(4).said.set_leaving(true);
  Node(4).said.set_pausing(true);
  Settle();
  ASSERT_TRUE(Node(4).left);
  // Whoever joins for a lost worker takes all that nobody has.
  Lose(3);
  Settle();
  NodeUnderTest& joined = Add(WORKER);
  Settle();
  EXPECT_EQ(Node(2).view.workers_size(), 2);
  EXPECT_EQ(StatusOf(2).virtual_workers_size() + StatusOf(joined.id()).virtual_workers_size(), 4);
  // And two workers are enough to go back to a checkpoint.
  Lose(1);
  Add(SERVER);
  Settle();
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  EXPECT_EQ(Node(2).view.timeline(), 2u);
}

TEST_F(CoordinatorServersTest, ItLeavesOnlyWhenNobodyAsksItAnyMore) {
  Begin(Options(2, 1));
  ASSERT_TRUE(Drain(2).ok());
  // Worker 4 is slow to hear of views.
  for (int i = 0; i < 12; ++i) {
    for (const uint32_t id : {1, 2, 3}) Node(id).Beat();
  }
  EXPECT_THAT(Owners(Node(3).view), ElementsAre(1));
  EXPECT_FALSE(Node(2).left);
  Node(4).Beat();
  Node(4).Beat();
  EXPECT_TRUE(Node(2).Beat().leave());
}

TEST_F(CoordinatorServersTest, WhatADrainedServerHadGoesToASpareOne) {
  Begin(Options(2, 2, /*spares=*/1));
  ASSERT_TRUE(Drain(1).ok());
  Settle();
  EXPECT_TRUE(Node(1).left);
  EXPECT_THAT(Owners(Node(4).view), ElementsAre(2, 3));
  EXPECT_EQ(AtRisk(), 0u);
}

TEST_F(CoordinatorServersTest, ALossOfADrainingServerLosesWhatNobodyHasYet) {
  Begin(Options(2, 1));
  ASSERT_TRUE(Drain(2).ok());
  Node(2).copies = false;
  Settle();
  Lose(2);
  EXPECT_EQ(job_->coordinator().phase(), WAITING);
}

TEST_F(CoordinatorServersTest, WhoeverTookOverMayBeLostToo) {
  Begin(Options(2, 1));
  Node(1).copies = false;
  ASSERT_TRUE(Drain(1).ok());
  Node(1).Beat();
  Node(2).Beat();
  Lose(2);
  // Server 1 is left, and owns a half; the other half is gone.
  EXPECT_EQ(job_->coordinator().phase(), WAITING);
  Add(SERVER);
  Settle();
  EXPECT_TRUE(Node(1).left) << "the next timeline begins without it";
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
}

TEST_F(CoordinatorServersTest, ALossDuringAChangeOfPlacesBeginsAnother) {
  Begin(Options(3, 2));
  Lose(3);
  EXPECT_EQ(Node(1).Beat().next_view().number(), 2u);
  NodeUnderTest& joined = Add(SERVER);
  Node(1).Beat();
  EXPECT_GT(Node(1).fenced, 2u);
  EXPECT_EQ(Node(1).placement, Node(1).fenced);
  Lose(joined.id());
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
  Settle();
  EXPECT_THAT(Owners(Node(5).view), ElementsAre(1, 2));
  EXPECT_EQ(Node(5).view.placement(), Node(1).placement);
  EXPECT_EQ(AtRisk(), 0u);
}

TEST_F(CoordinatorServersTest, AChangeOfWorkersBeforeOneOfPlacesIsSettledTakesItAlong) {
  Begin(Options(2, 2));
  Lose(1);
  EXPECT_EQ(Node(2).Beat().next_view().number(), 2u);
  Lose(3);
  const View next = Node(2).Beat().next_view();
  EXPECT_EQ(next.number(), 3u);
  EXPECT_EQ(next.placement(), 3u);
  EXPECT_EQ(next.lanes_size(), 2);
  Settle();
  EXPECT_EQ(Node(4).view.placement(), 3u);
  EXPECT_EQ(Node(4).view.workers_size(), 1);
}

TEST_F(CoordinatorServersTest, WhenOnlyWorkersChangeThePlacementStays) {
  Begin(Options(2, 2));
  Lose(3);
  const View next = Node(1).Beat().next_view();
  EXPECT_EQ(next.number(), 2u);
  EXPECT_EQ(next.placement(), 1u);
  EXPECT_EQ(next.lanes_size(), 0) << "it is known";
  Settle();
  EXPECT_EQ(Node(4).view.number(), 2u);
  EXPECT_EQ(Node(4).view.placement(), 1u);
}

TEST_F(CoordinatorServersTest, PartsOfACheckpointAreOfOnePlacement) {
  Begin(Options(2, 2));
  job_->Send(WithPart(WithPart(job_->ReadyBeat(1), 0, 4), 1, 4));
  Lose(2);
  Settle();
  job_->Send(WithPart(WithPart(job_->ReadyBeat(1), 0, 4), 1, 4));
  EXPECT_TRUE(job_->Take<CommitCheckpointAction>().empty()) << "of two lanes of four";
  job_->Send(WithPart(WithPart(job_->ReadyBeat(1), 0, 10, 2), 1, 10, 2));
  const auto commits = job_->Take<CommitCheckpointAction>();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].manifest.version(), 10u);
  EXPECT_EQ(commits[0].manifest.files_size(), 2);
}

TEST_F(CoordinatorServersTest, OnceAllStepsAreDoneNothingIsMoved) {
  Begin(Options(1, 1));
  for (const uint32_t id : {2, 3}) {
    Node(id).said.set_finished(true);
    Node(id).Beat();
  }
  NodeUnderTest& joined = Add(SERVER);
  Settle();
  EXPECT_EQ(joined.view.number(), 0u);
  job_->Send(WithPart(WithPart(job_->ReadyBeat(1), 0, 10), 1, 10));
  job_->coordinator().OnCheckpointCommitted(10, absl::OkStatus(), job_->now());
  EXPECT_EQ(job_->coordinator().phase(), DONE);
}

TEST_F(CoordinatorServersTest, AWorkerThatIsDrainedFinishesItsStepFirst) {
  Begin(Options(1, 1));
  HeartbeatRequest& said = Node(3).said;
  said.set_started(true);
  said.set_clock(4);
  ASSERT_EQ(Drain(3)->message(), "worker 3 (host, pid 3) hands over what it has and leaves");
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
  EXPECT_THAT(Notices(), HasSubstr("worker 3 (host, pid 3) has left\n"));
  EXPECT_EQ(Drain(2).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoordinatorServersTest, OthersTakeOverFromALeaverEvenWhereNobodyDoesFromALostOne) {
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

TEST_F(CoordinatorServersTest, WhoWantsToLeaveAndCannotStaysAndPeopleAreTold) {
  Begin(Options(1, 1));
  Notices();
  Node(1).said.set_leaving(true);
  Settle();
  EXPECT_FALSE(Node(1).left);
  EXPECT_EQ(Notices(),
            "server 1 (host, pid 1) cannot leave: it is the only server: start another one first "
            "(tug server), or end the job with: tug stop\n");
  Add(SERVER);
  Settle();
  EXPECT_TRUE(Node(1).left) << "now it can";
  EXPECT_EQ(job_->coordinator().phase(), RUNNING);
}

TEST_F(CoordinatorServersTest, ASpareServerLeavesAtOnce) {
  Begin(Options(1, 1, /*spares=*/1));
  EXPECT_EQ(Drain(2)->message(), "server 2 (host, pid 2) leaves");
  EXPECT_TRUE(Node(2).Beat().leave());
}

TEST_F(CoordinatorServersTest, BeforeTheJobBeginsWhoLeavesGivesUpItsPlace) {
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

TEST_F(CoordinatorServersTest, NobodyLeavesAJobThatCannotGoOnWithoutIt) {
  CoordinatorOptions options = Options(2, 1);
  options.config.mutable_sync()->set_policy(SyncConfig::BACKUP);
  Begin(options);
  EXPECT_EQ(Drain(9).status().code(), absl::StatusCode::kNotFound);
  for (const uint32_t id : {1, 3}) {
    EXPECT_EQ(Drain(id).status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(Drain(id).status().message()),
                HasSubstr("cannot leave: steps are skipped in this job (sync.policy BACKUP)"));
  }
}

TEST_F(CoordinatorServersTest, ServersKeepTheirSegmentsWhereWorkersLetGoOfGradients) {
  CoordinatorOptions options = Options(2, 1);
  options.config.mutable_placement()->set_kind(PlacementConfig::ZERO2);
  Begin(options);
  EXPECT_THAT(std::string(Drain(1).status().message()), HasSubstr("placement.kind ZERO2"));
  EXPECT_EQ(job_->coordinator().OnRegister(job_->Request(SERVER, 77), job_->now()).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_TRUE(Drain(4).ok()) << "a worker may";
}

TEST_F(CoordinatorServersTest, ServersOfARecordedJobKeepTheirSegments) {
  CoordinatorOptions options = Options(2, 1);
  options.config.mutable_sync()->set_policy(SyncConfig::ASP);
  options.config.mutable_sync()->set_record(SyncConfig::ORDER);
  Begin(options);
  EXPECT_THAT(std::string(Drain(1).status().message()), HasSubstr("sync.record ORDER"));
  EXPECT_EQ(job_->coordinator().OnRegister(job_->Request(SERVER, 77), job_->now()).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_TRUE(Drain(4).ok()) << "a worker may";
}

}  // namespace
}  // namespace tug
