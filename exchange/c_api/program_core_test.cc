// SPDX-License-Identifier: Apache-2.0
#include "exchange/c_api/program_core.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "proto/control.pb.h"

namespace tug {
namespace {

using Verdict = ProgramCore::Verdict;

JobConfig Config(SyncConfig::Policy policy) {
  JobConfig config;
  config.mutable_sync()->set_policy(policy);
  config.mutable_train()->set_steps(9);
  return config;
}

HeartbeatReply Going() {
  HeartbeatReply reply;
  reply.set_go(true);
  return reply;
}

HeartbeatRequest Beat(const ControlBoard& board) {
  HeartbeatRequest beat;
  board.AddTo(beat);
  return beat;
}

TEST(ProgramCore, BeginsStepsAsTheOrdersLetIt) {
  ControlBoard board;
  ProgramCore core(Config(SyncConfig::BSP), board);
  core.SetPlace({.virtual_workers = {2}, .start_clocks = {3}});
  EXPECT_EQ(core.TryBegin(3), Verdict::kWait) << "the job does not go yet";
  HeartbeatReply reply = Going();
  reply.mutable_schedule()->set_number(4);
  core.OnReply(reply, {});
  EXPECT_EQ(core.TryBegin(3), Verdict::kBegin);
  EXPECT_EQ(core.schedule().number, 4u);
  EXPECT_EQ(Beat(board).clock(), 3u);
  reply.set_pause(true);
  core.OnReply(reply, {});
  EXPECT_TRUE(Beat(board).pausing()) << "at once, in the middle of the step";
  EXPECT_EQ(core.TryBegin(4), Verdict::kWait);
  reply.set_final_version(5);
  core.OnReply(reply, {});
  EXPECT_EQ(core.TryBegin(4), Verdict::kBegin);
  EXPECT_EQ(core.TryBegin(5), Verdict::kDone);
  EXPECT_FALSE(core.pulls_once_more());
  core.Finish();
  EXPECT_TRUE(Beat(board).finished());
}

TEST(ProgramCore, RequestsTheVersionOfItsClockWherePushesAreSummed) {
  ControlBoard board;
  ProgramCore core(Config(SyncConfig::BSP), board);
  core.SetPlace({.virtual_workers = {2}, .start_clocks = {0}});
  const PullRequest pull = core.PullAt(1, 6);
  EXPECT_EQ(pull.block, 1u);
  EXPECT_EQ(pull.want, Want::kExact);
  EXPECT_EQ(pull.clock, 6u);
  EXPECT_EQ(pull.virtual_workers, (VirtualWorkerRun{2, 1}));
  const PushRequest push = core.PushAt(1, 6);
  EXPECT_EQ(push.virtual_worker, 2u);
  EXPECT_EQ(push.clock, 6u);
}

TEST(ProgramCore, EndsAtAClockOfItsOwnWherePushesAreUpdatesAndPullsTheLastWeights) {
  ControlBoard board;
  ProgramCore core(Config(SyncConfig::ASP), board);
  core.SetPlace({.virtual_workers = {1}, .start_clocks = {0}});
  HeartbeatReply reply = Going();
  core.OnReply(reply, {});
  EXPECT_EQ(core.TryBegin(8), Verdict::kBegin);
  EXPECT_EQ(core.PullAt(0, 8).want, Want::kAtLeast);
  EXPECT_EQ(core.TryBegin(9), Verdict::kWait) << "train.steps, until the ends are known";
  reply.set_final_version(9);
  for (const uint64_t clock : {12, 10}) reply.add_final_clocks(clock);
  core.OnReply(reply, {});
  EXPECT_EQ(core.TryBegin(9), Verdict::kBegin);
  EXPECT_EQ(core.TryBegin(10), Verdict::kDone);
  EXPECT_TRUE(core.pulls_once_more());
  EXPECT_EQ(core.PullAt(0, 10).want, Want::kExact);
  EXPECT_EQ(core.PullAt(0, 10).clock, 12u) << "of all programs' pushes";
}

}  // namespace
}  // namespace tug
