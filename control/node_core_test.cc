// SPDX-License-Identifier: Apache-2.0
#include "control/node_core.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/control.pb.h"

namespace tug {
namespace {

using testing::HasSubstr;

constexpr absl::Time kBegin = absl::UnixEpoch();

TEST(JoinCore, WaitsWhereTheJobIsFull) {
  JoinCore join(absl::Seconds(8), kBegin);
  EXPECT_FALSE(join.waits());
  for (int i = 0; i < 3; ++i) {
    const absl::Time now = kBegin + i * absl::Minutes(1);
    EXPECT_EQ(join.OnReply(absl::AbortedError("full"), now), JoinCore::Next::kAskAgain);
    EXPECT_TRUE(join.waits());
  }
  EXPECT_EQ(join.OnReply(absl::OkStatus(), kBegin + absl::Minutes(3)), JoinCore::Next::kJoined);
}

TEST(JoinCore, LooksForACoordinatorForItsTime) {
  JoinCore join(absl::Seconds(8), kBegin);
  const absl::Status silence = absl::UnavailableError("");
  EXPECT_EQ(join.OnReply(silence, kBegin + absl::Seconds(8)), JoinCore::Next::kAskAgain);
  EXPECT_EQ(join.OnReply(silence, kBegin + absl::Seconds(9)), JoinCore::Next::kFail);
}

TEST(JoinCore, TellsAJobThatIsDoneFromARefusal) {
  JoinCore join(absl::Seconds(8), kBegin);
  EXPECT_EQ(join.OnReply(absl::OutOfRangeError("done"), kBegin), JoinCore::Next::kNotNeeded);
  EXPECT_EQ(join.OnReply(absl::FailedPreconditionError("no"), kBegin), JoinCore::Next::kFail);
  EXPECT_EQ(join.OnReply(absl::ResourceExhaustedError("full"), kBegin), JoinCore::Next::kFail);
}

class BeatCoreTest : public testing::Test {
 protected:
  static RegisterReply Registered() {
    RegisterReply registered;
    registered.set_node_id(7);
    registered.set_job(5);
    FaultConfig& fault = *registered.mutable_config()->mutable_fault();
    fault.set_heartbeat_ms(1000);
    fault.set_failure_timeout_ms(3000);
    fault.set_coordinator_timeout_ms(10000);
    return registered;
  }

  // A heartbeat, and its reply a second later.
  BeatCore::Verdict Beat(const absl::StatusOr<HeartbeatReply>& reply, bool leaving = false) {
    beat_ = core_.Begin();
    core_.Complete(leaving, failure_, beat_);
    now_ += absl::Seconds(1);
    return core_.OnReply(reply, now_);
  }
  static HeartbeatReply Running() {
    HeartbeatReply reply;
    reply.set_phase(RUNNING);
    return reply;
  }

  absl::Time now_ = kBegin;
  absl::Status failure_;
  const absl::Status silence_ = absl::UnavailableError("");
  BeatCore core_{Registered(), /*longest_call=*/absl::Seconds(5), kBegin};
  HeartbeatRequest beat_;
};

TEST_F(BeatCoreTest, BeatsWhileTheJobRuns) {
  const BeatCore::Verdict verdict = Beat(Running(), /*leaving=*/true);
  EXPECT_TRUE(verdict.running);
  EXPECT_FALSE(verdict.end.has_value());
  EXPECT_EQ(beat_.node_id(), 7u);
  EXPECT_EQ(beat_.job(), 5u);
  EXPECT_TRUE(beat_.leaving());
}

TEST_F(BeatCoreTest, TakesEachViewOnce) {
  HeartbeatReply reply = Running();
  EXPECT_FALSE(core_.TakesView(reply));
  reply.mutable_view()->set_number(3);
  EXPECT_TRUE(core_.TakesView(reply));
  EXPECT_FALSE(core_.TakesView(reply));
  Beat(Running());
  EXPECT_EQ(beat_.known_view(), 3u);
}

TEST_F(BeatCoreTest, EndsAsTheJobEnds) {
  HeartbeatReply reply;
  reply.set_phase(DONE);
  EXPECT_EQ(Beat(reply).end, absl::OkStatus());
  reply.set_phase(FAILED);
  reply.set_failure("no servers");
  EXPECT_EQ(Beat(reply).end, absl::AbortedError("no servers"));
  EXPECT_EQ(Beat(absl::NotFoundError("fenced")).end, absl::NotFoundError("fenced"));
}

TEST_F(BeatCoreTest, LeavesWithAnErrorWhereItIsMissed) {
  HeartbeatReply reply = Running();
  reply.set_leave(true);
  const BeatCore::Verdict leaves = Beat(reply);
  EXPECT_EQ(leaves.end, absl::OkStatus());
  EXPECT_EQ(leaves.event, BeatCore::Event::kLeft);
  reply.set_replace(true);
  EXPECT_TRUE(absl::IsAborted(*Beat(reply).end));
}

TEST_F(BeatCoreTest, TellsOfSilenceOnceAndGivesUpLater) {
  using Event = BeatCore::Event;
  EXPECT_EQ(Beat(silence_).event, Event::kNone);
  EXPECT_EQ(Beat(silence_).event, Event::kNone);
  EXPECT_EQ(Beat(silence_).event, Event::kSilence);
  EXPECT_EQ(Beat(silence_).event, Event::kNone);
  EXPECT_TRUE(Beat(Running()).answers_again);
  EXPECT_FALSE(Beat(Running()).answers_again);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Beat(silence_).end.has_value());
  const BeatCore::Verdict verdict = Beat(silence_);
  EXPECT_EQ(verdict.event, Event::kGaveUp);
  EXPECT_THAT(std::string(verdict.end->message()), HasSubstr("has not replied for 11s"));
}

TEST_F(BeatCoreTest, DoesNotCountItsOwnPauseAsSilence) {
  Beat(Running());
  now_ += absl::Minutes(5);
  EXPECT_FALSE(Beat(silence_).end.has_value());
  EXPECT_TRUE(Beat(Running()).running);
}

TEST_F(BeatCoreTest, TellsThatItFailsBeforeItEnds) {
  failure_ = absl::InternalError("out of memory");
  EXPECT_FALSE(Beat(silence_).end.has_value());
  EXPECT_EQ(beat_.failure(), "out of memory");
  EXPECT_EQ(Beat(Running()).end, failure_);
}

TEST_F(BeatCoreTest, FailsWithoutTellingWhereNobodyAnswers) {
  failure_ = absl::InternalError("out of memory");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Beat(silence_).end.has_value());
  EXPECT_EQ(Beat(silence_).end, failure_);
}

}  // namespace
}  // namespace tug
