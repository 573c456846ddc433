// SPDX-License-Identifier: Apache-2.0
// Tests servers that are lost, join or are standby while a job runs.

#include <string>

#include "coordinator/coordinator_servers_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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
            "server-1 (host, pid 2) was lost: its connection was closed; server-0 serves the "
            "replicas of its 6 segments\n");
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
  EXPECT_THAT(notices,
              HasSubstr("server-1 (host, pid 2) had the only complete copy of 6 segments"));
  EXPECT_THAT(notices, HasSubstr("the job rolls back to step 0"));
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
  // It will own some of them, and have copies of the others.
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
  // The other one is lost too.
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

TEST_F(CoordinatorServersTest, ALossOfADrainingServerLosesWhatNobodyHasYet) {
  Begin(Options(2, 1));
  ASSERT_TRUE(Drain(2).ok());
  Node(2).copies = false;
  Settle();
  Lose(2);
  EXPECT_EQ(job_->coordinator().phase(), WAITING);
}

TEST_F(CoordinatorServersTest, RollsBackIfServerThatTookOverIsLost) {
  Begin(Options(2, 1));
  Node(1).copies = false;
  ASSERT_TRUE(Drain(1).ok());
  Node(1).Beat();
  Node(2).Beat();
  Lose(2);
  // Server 1 remains and owns one half; the other half is lost.
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

}  // namespace
}  // namespace tug
