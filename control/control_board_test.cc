// SPDX-License-Identifier: Apache-2.0
#include "control/control_board.h"

#include <gtest/gtest.h>

#include <thread>

#include "proto/wire.h"

namespace tug {
namespace {

StepReport Step(uint64_t clock) {
  StepReport report;
  report.set_clock(clock);
  return report;
}

HeartbeatRequest Beat(const ControlBoard& board) {
  HeartbeatRequest beat;
  board.AddTo(beat);
  return beat;
}

TEST(ControlBoard, ReportsTheSameUntilItIsConfirmed) {
  ControlBoard board;
  board.AddStep(Step(0));
  board.AddEval(EvalReport());
  EXPECT_EQ(Beat(board).steps_size(), 1);
  const HeartbeatRequest sent = Beat(board);  // the first one was lost
  ASSERT_EQ(sent.steps_size(), 1);
  EXPECT_EQ(sent.evals_size(), 1);
  board.AddStep(Step(1));  // while the heartbeat is in flight
  board.ConfirmReports(sent.steps_size(), sent.evals_size());
  const HeartbeatRequest next = Beat(board);
  ASSERT_EQ(next.steps_size(), 1);
  EXPECT_EQ(next.steps(0).clock(), 1u);
  EXPECT_EQ(next.evals_size(), 0);
}

TEST(ControlBoard, SaysPausingAndFinishedOnlyWithTheLastReport) {
  ControlBoard board;
  constexpr int kSteps = 10000;
  for (int i = 0; i < kSteps; ++i) board.AddStep(Step(static_cast<uint64_t>(i)));
  board.SetState({.started = true, .clock = kSteps - 1, .pausing = true, .finished = true});
  int reported = 0;
  HeartbeatRequest beat = Beat(board);
  while (!beat.finished()) {
    ASSERT_GT(beat.steps_size(), 0);
    EXPECT_FALSE(beat.pausing());
    reported += beat.steps_size();
    board.ConfirmReports(beat.steps_size(), 0);
    beat = Beat(board);
  }
  EXPECT_EQ(reported + beat.steps_size(), kSteps);
  EXPECT_TRUE(beat.pausing());
  EXPECT_TRUE(beat.started());
  EXPECT_EQ(beat.clock(), uint64_t{kSteps - 1});
}

TEST(ControlBoard, DoesNotWaitForOrdersThatHaveChangedAlready) {
  ControlBoard board;
  const ControlBoard::Orders known = board.orders();
  board.SetOrders({.go = true, .pause = false, .final_version = 9});
  EXPECT_TRUE(board.WaitForOrdersOtherThan(known).ok());
  EXPECT_EQ(board.orders().final_version, 9u);
}

TEST(ControlBoard, SaysWhetherOrdersHaveChanged) {
  ControlBoard board;
  ControlBoard::Orders known;
  EXPECT_FALSE(board.RefreshOrders(known));
  board.SetOrders({.go = true, .final_version = 9, .final_clocks = {9, 10}});
  EXPECT_TRUE(board.RefreshOrders(known));
  EXPECT_EQ(known, board.orders());
  EXPECT_FALSE(board.RefreshOrders(known));
}

TEST(ControlBoard, WakesTheWaiterWhenOrdersChange) {
  ControlBoard board;
  absl::Status status = absl::UnknownError("not yet");
  std::thread compute([&] { status = board.WaitForOrdersOtherThan({}); });
  board.SetOrders({});  // unchanged
  board.SetOrders({.go = true, .pause = false, .final_version = 0});
  compute.join();
  EXPECT_TRUE(status.ok());
}

TEST(ControlBoard, HandsOnTheScheduleThatAReplyOrders) {
  HeartbeatReply reply;
  reply.set_go(true);
  EXPECT_EQ(ControlBoard::OrdersOf(reply, {}).schedule, ExchangeSchedule());
  Schedule& schedule = *reply.mutable_schedule();
  schedule.set_number(3);
  schedule.set_partition_bytes(4096);
  schedule.set_credit_bytes(65536);
  schedule.set_pull_credit_bytes(7);
  EXPECT_EQ(ControlBoard::OrdersOf(reply, {}).schedule,
            (ExchangeSchedule{.number = 3, .partition_bytes = 4096, .credit_bytes = 65536}));
  EXPECT_TRUE(ControlBoard::OrdersOf(reply, {}).go);
}

TEST(ControlBoard, KeepsNewestScheduleDespiteOlderReplies) {
  const ExchangeSchedule known = {.number = 3, .partition_bytes = 4096, .credit_bytes = 65536};
  HeartbeatReply reply;
  EXPECT_EQ(ControlBoard::OrdersOf(reply, known).schedule, known) << "none";
  reply.mutable_schedule()->set_number(2);
  EXPECT_EQ(ControlBoard::OrdersOf(reply, known).schedule, known) << "an older one";
  reply.mutable_schedule()->set_number(4);
  EXPECT_EQ(ControlBoard::OrdersOf(reply, known).schedule, ExchangeSchedule{.number = 4});
}

TEST(ControlBoard, TakesNoPartitionThatNoPayloadHolds) {
  HeartbeatReply reply;
  reply.mutable_schedule()->set_number(1);
  reply.mutable_schedule()->set_partition_bytes(~uint64_t{0});
  EXPECT_EQ(ControlBoard::OrdersOf(reply, {}).schedule.partition_bytes, kMaxPayloadBytes / 2);
}

TEST(ControlBoard, SaysWhichScheduleIsInEffect) {
  ControlBoard board;
  board.SetState({.started = true, .clock = 4, .schedule = 3});
  EXPECT_EQ(Beat(board).schedule(), 3u);
}

TEST(ControlBoard, CancelEndsWaitsNowAndLaterWithTheFirstReason) {
  ControlBoard board;
  absl::Status status;
  std::thread compute([&] { status = board.WaitForOrdersOtherThan({}); });
  board.Cancel(absl::AbortedError("first"));
  board.Cancel(absl::CancelledError("second"));
  compute.join();
  EXPECT_EQ(status, absl::AbortedError("first"));
  EXPECT_EQ(board.WaitForOrdersOtherThan({}), absl::AbortedError("first"));
  EXPECT_EQ(board.cancelled(), absl::AbortedError("first"));
}

}  // namespace
}  // namespace tug
