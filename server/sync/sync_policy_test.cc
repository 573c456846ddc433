// SPDX-License-Identifier: Apache-2.0
#include "server/sync/sync_policy.h"

#include <gtest/gtest.h>

#include "config/sync_mode.h"

namespace tug {
namespace {

SyncConfig Sync(SyncConfig::Policy policy) {
  SyncConfig sync;
  sync.set_policy(policy);
  sync.set_staleness(2);
  sync.set_backups(1);
  return sync;
}

TEST(SyncPolicy, HasARowForEveryPolicyOfTheJobAndOfSyncMode) {
  for (int p = 0; p <= SyncConfig::Policy_MAX; ++p) {
    const auto policy = static_cast<SyncConfig::Policy>(p);
    EXPECT_NE(MakeSyncPolicy(Sync(policy)), nullptr);
    EXPECT_TRUE(p == 0 || SyncModeOf(policy).policy == policy);
  }
}

TEST(BspPolicy, TakesTheOpenClockOnlyAndClosesWithAllThatLive) {
  const auto bsp = MakeSyncPolicy(Sync(SyncConfig::BSP));
  const SegmentClocks segment{.version = 5};
  EXPECT_EQ(bsp->FateOf(0, 4, segment), PushFate::kCommitted);
  EXPECT_EQ(bsp->FateOf(0, 5, segment), PushFate::kTake);
  EXPECT_EQ(bsp->FateOf(0, 6, segment), PushFate::kImpossible);
  EXPECT_FALSE(bsp->Closes(3, 4));
  EXPECT_TRUE(bsp->Closes(4, 4));
  EXPECT_TRUE(bsp->Closes(3, 3));
  EXPECT_FALSE(bsp->Closes(0, 0));
  EXPECT_TRUE(bsp->Serves({.clock = 5}, segment));
  EXPECT_FALSE(bsp->Serves({.clock = 6}, segment));
}

TEST(BackupPolicy, ClosesWithoutTheLastAndDropsThem) {
  const auto backup = MakeSyncPolicy(Sync(SyncConfig::BACKUP));
  AppliedClocks applied(2);
  applied.Note(0, 4);
  applied.Note(1, 3);
  const SegmentClocks segment{.version = 5, .applied = &applied};
  EXPECT_EQ(backup->FateOf(0, 4, segment), PushFate::kCommitted);
  EXPECT_EQ(backup->FateOf(1, 4, segment), PushFate::kDropped);
  EXPECT_EQ(backup->FateOf(1, 3, segment), PushFate::kCommitted);
  EXPECT_EQ(backup->FateOf(1, 5, segment), PushFate::kTake);
  EXPECT_EQ(backup->FateOf(1, 6, segment), PushFate::kImpossible);
  EXPECT_FALSE(backup->Closes(2, 4));
  EXPECT_TRUE(backup->Closes(3, 4));
  EXPECT_FALSE(backup->Closes(0, 1));
  EXPECT_TRUE(backup->Closes(1, 1));
  EXPECT_TRUE(backup->Serves({.clock = 3}, segment));
}

TEST(SspPolicy, TakesPushesInTheOrderOfTheirVirtualWorker) {
  const auto ssp = MakeSyncPolicy(Sync(SyncConfig::SSP));
  const LiveSet live(2);
  VectorClock next(live, 3);
  next.Advance(1);
  const SegmentClocks segment{.version = 7, .next = &next};
  EXPECT_EQ(ssp->FateOf(0, 2, segment), PushFate::kCommitted);
  EXPECT_EQ(ssp->FateOf(0, 3, segment), PushFate::kTake);
  EXPECT_EQ(ssp->FateOf(0, 4, segment), PushFate::kEarly);
  EXPECT_EQ(ssp->FateOf(0, 5, segment), PushFate::kImpossible);
  EXPECT_EQ(ssp->FateOf(1, 4, segment), PushFate::kTake);
}

TEST(SspPolicy, HoldsAPullWhenItsClockExceedsTheSlowestByMoreThanTheStaleness) {
  const LiveSet live(3);
  VectorClock next(live, 0);
  next.Set(std::vector<uint64_t>{4, 9, 6});
  const SegmentClocks segment{.next = &next};
  const auto pull = [](uint64_t clock) {
    return PullWish{.clock = clock, .virtual_worker = 1, .virtual_worker_count = 1};
  };
  const auto ssp = MakeSyncPolicy(Sync(SyncConfig::SSP));
  EXPECT_TRUE(ssp->Serves(pull(6), segment));
  EXPECT_FALSE(ssp->Serves(pull(7), segment));
  const auto asp = MakeSyncPolicy(Sync(SyncConfig::ASP));
  EXPECT_TRUE(asp->Serves(pull(9), segment));
  EXPECT_FALSE(asp->Serves(pull(10), segment)) << "has not got what it wrote itself";
}

TEST(SspPolicy, DoesNotWaitForTheDead) {
  LiveSet live(3);
  VectorClock next(live, 0);
  next.Set(std::vector<uint64_t>{0, 9, 8});
  const auto ssp = MakeSyncPolicy(Sync(SyncConfig::SSP));
  const PullWish pull{.clock = 9, .virtual_worker = 1, .virtual_worker_count = 1};
  EXPECT_FALSE(ssp->Serves(pull, {.next = &next}));
  live = LiveSet(std::vector<bool>{false, true, true});
  next.Recount();
  EXPECT_TRUE(ssp->Serves(pull, {.next = &next}));
}

TEST(SspPolicy, AnswersAnExactPullOnceAllThatWillComeIsIn) {
  const LiveSet live(2);
  VectorClock next(live, 0);
  next.Set(std::vector<uint64_t>{4, 6});
  const auto ssp = MakeSyncPolicy(Sync(SyncConfig::SSP));
  PullWish pull{.clock = 6, .exact = true};
  EXPECT_FALSE(ssp->Serves(pull, {.next = &next}));
  const std::vector<uint64_t> final_clocks = {4, 7};
  pull.final_clocks = final_clocks;
  EXPECT_TRUE(ssp->Serves(pull, {.next = &next}));
  pull.clock = 7;
  EXPECT_FALSE(ssp->Serves(pull, {.next = &next}));
}

TEST(SspPolicy, DoesNotWaitForWhoHasPushedItsLastClock) {
  const LiveSet live(2);
  VectorClock next(live, 0);
  next.Set(std::vector<uint64_t>{4, 9});
  const auto ssp = MakeSyncPolicy(Sync(SyncConfig::SSP));
  PullWish pull{.clock = 9, .virtual_worker = 1, .virtual_worker_count = 1};
  EXPECT_FALSE(ssp->Serves(pull, {.next = &next}));
  std::vector<uint64_t> final_clocks = {5, 12};
  pull.final_clocks = final_clocks;
  EXPECT_FALSE(ssp->Serves(pull, {.next = &next}));
  next.Advance(0);
  EXPECT_TRUE(ssp->Serves(pull, {.next = &next}));
}

TEST(VectorClock, KnowsTheLeastOfTheLive) {
  LiveSet live(3);
  VectorClock clock(live, 2);
  EXPECT_EQ(clock.least(), 2u);
  EXPECT_FALSE(clock.Advance(0));
  EXPECT_FALSE(clock.Advance(0));
  EXPECT_FALSE(clock.Advance(1));
  EXPECT_TRUE(clock.Advance(2));
  EXPECT_EQ(clock.least(), 3u);
  live = LiveSet(std::vector<bool>{true, false, false});
  clock.Recount();
  EXPECT_EQ(clock.least(), 4u);
  EXPECT_FALSE(clock.Advance(1));
  EXPECT_TRUE(clock.Advance(0));
  live = LiveSet(std::vector<bool>{false, false, false});
  clock.Recount();
  EXPECT_EQ(clock.least(), VectorClock::kNever);
}

TEST(AppliedClocks, TellsWhatWasAppliedAsFarBackAsItRemembers) {
  using enum AppliedClocks::Answer;
  AppliedClocks applied(1);
  EXPECT_EQ(applied.Has(0, 0), kNot);
  for (uint64_t clock = 0; clock < 300; ++clock) {
    if (clock % 3 != 0) applied.Note(0, clock);
    const uint64_t newest = clock % 3 == 0 ? (clock == 0 ? 0 : clock - 1) : clock;
    if (clock == 0) continue;
    for (uint64_t back = 0; back <= clock; ++back) {
      const auto answer = applied.Has(0, back);
      if (newest > back + AppliedClocks::kRemembered) {
        ASSERT_EQ(answer, kForgotten) << clock << ", " << back;
      } else {
        ASSERT_EQ(answer, back % 3 == 0 ? kNot : kApplied) << clock << ", " << back;
      }
    }
  }
  applied.Note(0, 299 + AppliedClocks::kRemembered);
  EXPECT_EQ(applied.Has(0, 299), kApplied);
  EXPECT_EQ(applied.Has(0, 300), kNot);
  applied.Note(0, 10'000);
  EXPECT_EQ(applied.Has(0, 9'999), kNot);
  EXPECT_EQ(applied.Has(0, 299), kForgotten);
}

}  // namespace
}  // namespace tug
