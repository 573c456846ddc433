// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/view_change.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Ids = std::vector<uint32_t>;
using Clocks = std::vector<uint64_t>;

class ViewChangeTest : public ::testing::Test {
 protected:
  // Servers 1 and 2; four virtual workers, two workers: 3 has 0 and 1, 4 has 2 and 3.
  ViewChange Begun(FaultConfig::WorkerLoss on_loss = FaultConfig::REASSIGN) {
    ViewChange change({.virtual_workers = 4, .workers = 2, .on_worker_loss = on_loss});
    change.BeginTimeline(Ids{3, 4}, Ids{1, 2});
    return change;
  }
  static void Settle(ViewChange& change, const Clocks& first, const Clocks& second) {
    ASSERT_TRUE(change.fencing());
    change.AddClocks(1, change.number(), first);
    EXPECT_FALSE(change.TakeSettled());
    change.AddClocks(2, change.number(), second);
    EXPECT_TRUE(change.TakeSettled());
    EXPECT_FALSE(change.TakeSettled());
    EXPECT_FALSE(change.fencing());
  }
};

TEST_F(ViewChangeTest, ReassignsLostVirtualWorkersFromLowestClockOfAllLanes) {
  ViewChange change = Begun();
  EXPECT_EQ(change.number(), 1u);
  EXPECT_THAT(change.owners(), ElementsAre(3, 3, 4, 4));
  change.SetWorkers(Ids{3, 4}, false);
  EXPECT_FALSE(change.fencing()) << "nothing has changed";
  change.SetWorkers(Ids{3}, false);
  EXPECT_EQ(change.number(), 2u);
  Settle(change, {7, 7, 6, 7}, {7, 8, 7, 5});
  EXPECT_THAT(change.owners(), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(change.start_clocks(), ElementsAre(7, 7, 6, 5));
  EXPECT_THAT(change.TakeLost(), ElementsAre(2, 3));
  EXPECT_THAT(change.TakeLost(), IsEmpty());
}

TEST_F(ViewChangeTest, GivesAWorkerThatJoinsLaterVirtualWorkersBack) {
  ViewChange change = Begun();
  change.SetWorkers(Ids{3}, false);
  Settle(change, {1, 1, 1, 1}, {1, 1, 1, 1});
  change.SetWorkers(Ids{3, 9}, false);
  EXPECT_EQ(change.number(), 3u);
  Settle(change, {4, 4, 4, 4}, {5, 5, 5, 5});
  EXPECT_THAT(change.owners(), ElementsAre(3, 3, 9, 9));
  // Worker 3 still reports what it did of them; once it is lost, it does not.
  EXPECT_THAT(change.TakeLost(), ElementsAre(2, 3));
  change.SetWorkers(Ids{9}, false);
  Settle(change, {6, 6, 6, 6}, {6, 6, 6, 6});
  EXPECT_THAT(change.TakeLost(), ElementsAre(0, 1, 2, 3));
}

TEST_F(ViewChangeTest, WaitingOrShrinkingGivesThemToNobodyButToWhoJoins) {
  for (const auto policy : {FaultConfig::WAIT, FaultConfig::SHRINK}) {
    ViewChange change = Begun(policy);
    change.SetWorkers(Ids{4}, false);
    Settle(change, {3, 3, 3, 3}, {3, 3, 3, 3});
    EXPECT_THAT(change.owners(), ElementsAre(0, 0, 4, 4));
    change.SetWorkers(Ids{4, 5}, false);
    Settle(change, {3, 3, 4, 4}, {3, 3, 4, 4});
    EXPECT_THAT(change.owners(), ElementsAre(5, 5, 4, 4));
    EXPECT_THAT(change.start_clocks(), ElementsAre(3, 3, 4, 4));
  }
}

TEST_F(ViewChangeTest, WorkerJoiningWhileWaitingGetsOnlyItsShare) {
  ViewChange change({.virtual_workers = 4, .workers = 3, .on_worker_loss = FaultConfig::WAIT});
  change.BeginTimeline(Ids{3, 4, 5}, Ids{1, 2});
  EXPECT_THAT(change.owners(), ElementsAre(3, 3, 4, 5));
  change.SetWorkers(Ids{5}, false);
  Settle(change, {1, 1, 1, 1}, {1, 1, 1, 1});
  change.SetWorkers(Ids{5, 6}, false);
  Settle(change, {1, 1, 1, 1}, {1, 1, 1, 1});
  EXPECT_THAT(change.owners(), ElementsAre(6, 6, 0, 5));
}

TEST_F(ViewChangeTest, AStopDoesNotWaitForAWorker) {
  ViewChange change = Begun(FaultConfig::WAIT);
  change.SetWorkers(Ids{3}, false);
  Settle(change, {3, 3, 3, 3}, {3, 3, 3, 3});
  change.SetWorkers(Ids{3}, true);
  Settle(change, {3, 3, 3, 3}, {3, 3, 3, 3});
  EXPECT_THAT(change.owners(), ElementsAre(3, 3, 3, 3));
  change.SetWorkers(Ids{3}, true);
  EXPECT_FALSE(change.fencing());
}

TEST_F(ViewChangeTest, ALossDuringAChangeBeginsAnotherThatTakesNoClocksOfTheFirst) {
  ViewChange change({.virtual_workers = 3, .workers = 3});
  change.BeginTimeline(Ids{3, 4, 5}, Ids{1, 2});
  change.SetWorkers(Ids{3, 4}, false);
  change.AddClocks(1, 2, Clocks{1, 1, 1});
  change.SetWorkers(Ids{4}, false);
  EXPECT_EQ(change.number(), 3u);
  change.AddClocks(2, 2, Clocks{1, 1, 1});
  EXPECT_FALSE(change.TakeSettled());
  Settle(change, {2, 2, 2}, {2, 2, 2});
  EXPECT_THAT(change.owners(), ElementsAre(4, 4, 4));
  EXPECT_THAT(change.TakeLost(), ElementsAre(0, 2));
}

TEST_F(ViewChangeTest, WithoutAnyWorkerNobodyHasAnythingUntilOneJoins) {
  ViewChange change = Begun();
  change.SetWorkers({}, false);
  Settle(change, {2, 2, 2, 2}, {2, 2, 2, 2});
  EXPECT_THAT(change.owners(), ElementsAre(0, 0, 0, 0));
  change.SetWorkers(Ids{8}, false);
  Settle(change, {2, 2, 2, 2}, {2, 2, 2, 2});
  EXPECT_THAT(change.owners(), ElementsAre(8, 8, 8, 8));
}

TEST_F(ViewChangeTest, TakesNoClocksFromStrangersAndNoneOfAnotherNumberOrSize) {
  ViewChange change = Begun();
  change.SetWorkers(Ids{3}, false);
  change.AddClocks(1, 2, Clocks{1, 1, 1, 1});
  change.AddClocks(7, 2, Clocks{0, 0, 0, 0});
  change.AddClocks(2, 1, Clocks{0, 0, 0, 0});
  change.AddClocks(2, 2, Clocks{0, 0, 0});
  EXPECT_FALSE(change.TakeSettled());
  change.AddClocks(1, 2, Clocks{2, 2, 2, 2});  // a later report
  change.AddClocks(2, 2, Clocks{5, 5, 5, 5});
  EXPECT_TRUE(change.TakeSettled());
  EXPECT_THAT(change.start_clocks(), ElementsAre(2, 2, 2, 2));
}

TEST_F(ViewChangeTest, OthersServersAreAskedWhenSegmentsArePlacedAnew) {
  ViewChange change = Begun();
  change.SetServers(Ids{2, 7});
  EXPECT_EQ(change.number(), 2u);
  EXPECT_TRUE(change.fencing());
  change.AddClocks(1, 2, Clocks{0, 0, 0, 0});
  change.AddClocks(2, 2, Clocks{4, 4, 5, 4});
  EXPECT_FALSE(change.TakeSettled());
  change.AddClocks(7, 2, Clocks{4, 4, 4, 5});
  EXPECT_TRUE(change.TakeSettled());
  EXPECT_THAT(change.owners(), ElementsAre(3, 3, 4, 4)) << "as before";
  EXPECT_THAT(change.start_clocks(), ElementsAre(4, 4, 4, 4));
  change.SetWorkers(Ids{3}, false);
  change.AddClocks(2, 3, Clocks{5, 5, 5, 5});
  EXPECT_TRUE(change.fencing());
  change.AddClocks(7, 3, Clocks{5, 5, 5, 5});
  EXPECT_TRUE(change.TakeSettled());
}

TEST_F(ViewChangeTest, AnotherPlacementBeforeOneIsSettledAsksAgain) {
  ViewChange change = Begun();
  change.SetServers(Ids{1, 2, 7});
  change.AddClocks(1, 2, Clocks{1, 1, 1, 1});
  change.SetServers(Ids{1, 7});
  EXPECT_EQ(change.number(), 3u);
  change.AddClocks(7, 3, Clocks{1, 1, 1, 1});
  EXPECT_FALSE(change.TakeSettled());
  change.AddClocks(1, 3, Clocks{1, 1, 1, 1});
  EXPECT_TRUE(change.TakeSettled());
}

TEST_F(ViewChangeTest, OtherWorkersTakeOverFromLeavingWorkerUnderAnyPolicy) {
  for (const auto policy : {FaultConfig::REASSIGN, FaultConfig::WAIT, FaultConfig::SHRINK}) {
    ViewChange change = Begun(policy);
    change.SetLeaving(4);
    change.SetWorkers(Ids{3}, false);
    Settle(change, {3, 3, 3, 3}, {3, 3, 3, 3});
    EXPECT_THAT(change.owners(), ElementsAre(3, 3, 3, 3));
    EXPECT_THAT(change.TakeLost(), ElementsAre(2, 3)) << "it reports no more";
  }
}

TEST_F(ViewChangeTest, JoiningWorkerReplacesLostWorkerWhileAnotherLeaves) {
  ViewChange change = Begun(FaultConfig::WAIT);
  change.SetWorkers(Ids{4}, false);
  Settle(change, {3, 3, 3, 3}, {3, 3, 3, 3});
  EXPECT_THAT(change.owners(), ElementsAre(0, 0, 4, 4));
  change.SetLeaving(4);
  change.SetWorkers(Ids{5}, false);
  Settle(change, {3, 3, 4, 4}, {3, 3, 4, 4});
  EXPECT_THAT(change.owners(), ElementsAre(5, 5, 5, 5));
}

TEST_F(ViewChangeTest, WaitsForNobodyWhenAsManyAsTheJobWantsAreThere) {
  ViewChange change = Begun(FaultConfig::WAIT);
  change.SetLeaving(3);
  change.SetWorkers(Ids{3, 4, 5}, false);  // 5 has come for 3, which finishes its step
  Settle(change, {3, 3, 3, 3}, {3, 3, 3, 3});
  EXPECT_THAT(change.owners(), ElementsAre(3, 5, 4, 4));
  change.SetWorkers(Ids{3, 5}, false);
  Settle(change, {4, 4, 3, 3}, {4, 4, 3, 3});
  EXPECT_THAT(change.owners(), ElementsAre(3, 5, 3, 5));
  change.SetWorkers(Ids{5}, false);
  Settle(change, {4, 4, 4, 4}, {4, 4, 4, 4});
  EXPECT_THAT(change.owners(), ElementsAre(5, 5, 5, 5));
}

TEST_F(ViewChangeTest, GivesThoseThatAreThereWhatIsLeftOnceTheJobWantsNoMore) {
  ViewChange change = Begun(FaultConfig::WAIT);
  change.SetWorkers(Ids{3}, false);
  Settle(change, {1, 1, 1, 1}, {1, 1, 1, 1});
  change.SetWanted(2);
  EXPECT_FALSE(change.fencing()) << "nothing has changed";
  change.SetWanted(1);
  Settle(change, {2, 2, 1, 1}, {2, 2, 1, 1});
  EXPECT_THAT(change.owners(), ElementsAre(3, 3, 3, 3));
}

TEST_F(ViewChangeTest, ATimelineDealsAfresh) {
  ViewChange change = Begun();
  change.SetWorkers(Ids{4}, false);
  change.BeginTimeline(Ids{4, 6}, Ids{1, 5});
  EXPECT_EQ(change.number(), 3u);
  EXPECT_FALSE(change.fencing());
  EXPECT_THAT(change.owners(), ElementsAre(4, 4, 6, 6));
  EXPECT_THAT(change.TakeLost(), IsEmpty());
}

}  // namespace
}  // namespace tug
