// SPDX-License-Identifier: Apache-2.0
#include "exchange/open_requests.h"

#include <gtest/gtest.h>

#include <utility>

namespace tug {
namespace {

const absl::Time kBegin = absl::UnixEpoch();

absl::Time At(int seconds) { return kBegin + absl::Seconds(seconds); }

TEST(OpenRequests, APullIsOpenUntilItsEvent) {
  OpenRequests open(2, /*frees_gradients=*/false);
  EXPECT_FALSE(open.IsPulled(0, 0));
  open.OnPull(0, kBegin);
  EXPECT_TRUE(open.HasOpenPull(0));
  open.OnEvent(BlockPulled{.block = 0, .version = 3, .newest = 5, .clock = 4}, kBegin);
  EXPECT_FALSE(open.HasOpenPull(0));
  EXPECT_TRUE(open.IsPulled(0, 4));
  EXPECT_FALSE(open.IsPulled(0, 5)) << "a later clock was not requested";
  EXPECT_EQ(open.PulledVersions(0).lowest, 3u);
  EXPECT_EQ(open.PulledVersions(0).highest, 5u);
  EXPECT_FALSE(open.IsPulled(1, 0));
}

TEST(OpenRequests, OnlyTheLastPullOfABlockCounts) {
  OpenRequests open(1, /*frees_gradients=*/false);
  open.OnPull(0, kBegin);
  open.OnPull(0, kBegin);
  open.OnEvent(BlockPulled{.block = 0, .clock = 1, .superseded = true}, kBegin);
  EXPECT_FALSE(open.IsPulled(0, 0));
  EXPECT_TRUE(open.HasOpenPull(0));
  open.OnEvent(BlockPulled{.block = 0, .version = 2, .clock = 2}, kBegin);
  EXPECT_TRUE(open.IsPulled(0, 2));
}

TEST(OpenRequests, WeightsInPlaceAreTakenOnce) {
  OpenRequests open(1, /*frees_gradients=*/false);
  const float weights[] = {1, 2};
  open.OnPull(0, kBegin);
  open.OnEvent(BlockPulled{.block = 0, .in_place = {.elements = weights}}, kBegin);
  EXPECT_EQ(open.TakeInPlace(0).elements.size(), 2u);
  EXPECT_TRUE(open.TakeInPlace(0).elements.empty());
}

TEST(OpenRequests, AForgottenPullIsNotThere) {
  OpenRequests open(1, /*frees_gradients=*/false);
  open.OnPull(0, kBegin);
  open.OnEvent(BlockPulled{.block = 0}, kBegin);
  open.Forget(0);
  EXPECT_FALSE(open.IsPulled(0, 0));
}

TEST(OpenRequests, PushesAreCountedByBlockAndVirtualWorker) {
  OpenRequests open(2, /*frees_gradients=*/false);
  EXPECT_TRUE(open.IsCommitted(0, 7)) << "never pushed";
  open.OnPush(0, 2, kBegin);
  open.OnPush(0, 2, kBegin);
  EXPECT_TRUE(open.OnEvent(PushCommitted{.block = 0, .virtual_worker = 2}, kBegin).ok());
  EXPECT_FALSE(open.IsCommitted(0, 2));
  EXPECT_TRUE(open.IsCommitted(0, 1));
  EXPECT_TRUE(open.IsCommitted(1, 2));
  EXPECT_TRUE(open.OnEvent(PushCommitted{.block = 0, .virtual_worker = 2}, kBegin).ok());
  EXPECT_TRUE(open.IsCommitted(0, 2));
}

TEST(OpenRequests, AFreedGradientIsReceivedBeforeItIsCommitted) {
  OpenRequests open(1, /*frees_gradients=*/true);
  open.OnPush(0, 1, kBegin);
  EXPECT_FALSE(open.IsReceived(0, 1));
  open.OnEvent(PushDeferred{.block = 0, .virtual_worker = 1});
  EXPECT_TRUE(open.IsDeferred(0, 1));
  open.OnEvent(PushReceived{.block = 0, .virtual_worker = 1});
  EXPECT_TRUE(open.IsReceived(0, 1));
  EXPECT_FALSE(open.IsDeferred(0, 1));
  EXPECT_FALSE(open.IsCommitted(0, 1));
}

TEST(OpenRequests, ALostPushIsDataLossAndNamesItsBlock) {
  OpenRequests open(1, /*frees_gradients=*/true);
  open.OnPush(0, 1, kBegin);
  const absl::Status lost = open.OnEvent(PushCommitted{.virtual_worker = 1, .lost = true}, kBegin);
  EXPECT_TRUE(absl::IsDataLoss(lost)) << lost;
}

TEST(OpenRequests, OpenTimeIsThatOfTheUnionOfRequests) {
  OpenRequests open(1, /*frees_gradients=*/false);
  open.OnPush(0, 0, At(0));
  open.OnPull(0, At(1));
  EXPECT_TRUE(open.OnEvent(PushCommitted{}, At(3)).ok());
  EXPECT_EQ(open.OpenTime(At(4)), absl::Seconds(4));
  open.OnEvent(BlockPulled{}, At(5));
  EXPECT_EQ(open.OpenTime(At(9)), absl::Seconds(5));
  open.OnPull(0, At(10));
  EXPECT_EQ(open.OpenTime(At(11)), absl::Seconds(6));
}

}  // namespace
}  // namespace tug
