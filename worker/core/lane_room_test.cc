// SPDX-License-Identifier: Apache-2.0
#include "worker/core/lane_room.h"

#include <gtest/gtest.h>

#include <vector>

namespace tug {
namespace {

const std::vector<uint32_t> kCarried = {2, 1};

constexpr uint32_t kView = 3;
const std::vector<uint32_t> kOne = {2};

ControlBoard::Orders OrdersOf(bool pause, uint32_t view) {
  return {.go = true, .pause = pause, .view = view};
}

TEST(LaneRoom, WorkerWithOneVirtualWorkerWaitsForRoomOnLanes) {
  EXPECT_TRUE(WaitsForRoomOnLanes(OrdersOf(false, kView), kOne, false, kView, kOne));
  EXPECT_FALSE(WaitsForRoomOnLanes(OrdersOf(false, kView), kCarried, false, kView, kCarried));
}

TEST(LaneRoom, WorkerWithNewAssignmentDoesNotWaitForRoom) {
  const std::vector<uint32_t> more = {2, 4}, other = {4};
  EXPECT_TRUE(WaitsForRoomOnLanes(OrdersOf(false, kView + 1), kOne, false, kView, kOne));
  EXPECT_FALSE(WaitsForRoomOnLanes(OrdersOf(false, kView + 1), more, false, kView, kOne));
  EXPECT_FALSE(WaitsForRoomOnLanes(OrdersOf(false, kView + 1), other, false, kView, kOne));
}

TEST(LaneRoom, WorkerWithPauseToReportDoesNotWaitForRoom) {
  EXPECT_FALSE(WaitsForRoomOnLanes(OrdersOf(true, kView), kOne, false, kView, kOne));
  EXPECT_TRUE(WaitsForRoomOnLanes(OrdersOf(true, kView), kOne, true, kView, kOne));
  // The pause is reported in the newest view only, which the worker adopts between two steps.
  EXPECT_FALSE(WaitsForRoomOnLanes(OrdersOf(true, kView + 1), kOne, true, kView, kOne));
}

}  // namespace
}  // namespace tug
