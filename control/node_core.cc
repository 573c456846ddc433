// SPDX-License-Identifier: Apache-2.0
#include "control/node_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/control.pb.h"

namespace tug {
namespace {

// Silence after which the user is told.
constexpr absl::Duration kSilence = absl::Seconds(2);

bool IsSilence(const absl::Status& reply) {
  return absl::IsUnavailable(reply) || absl::IsDeadlineExceeded(reply);
}

}  // namespace

JoinCore::Next JoinCore::OnReply(const absl::Status& reply, absl::Time now) {
  if (reply.ok()) return Next::kJoined;
  if (absl::IsOutOfRange(reply)) return Next::kNotNeeded;
  if (absl::IsUnavailable(reply)) return now - answered_ > timeout_ ? Next::kFail : Next::kAskAgain;
  if (!absl::IsAborted(reply)) return Next::kFail;
  answered_ = now;
  waits_ = true;
  return Next::kAskAgain;
}

BeatCore::BeatCore(const RegisterReply& registered, absl::Duration longest_call, absl::Time now)
    : node_id_(registered.node_id()),
      job_(registered.job()),
      interval_(absl::Milliseconds(registered.config().fault().heartbeat_ms())),
      tell_patience_(absl::Milliseconds(registered.config().fault().failure_timeout_ms())),
      patience_(absl::Milliseconds(registered.config().fault().coordinator_timeout_ms())),
      own_pauses_(longest_call + 2 * interval_ + kSilence),
      answered_(now) {}

HeartbeatRequest BeatCore::Begin() const {
  HeartbeatRequest beat;
  beat.set_node_id(node_id_);
  beat.set_job(job_);
  beat.set_known_view(known_view_);
  return beat;
}

void BeatCore::Complete(bool wants_to_leave, const absl::Status& failure, HeartbeatRequest& beat) {
  failure_ = failure;
  beat.set_leaving(wants_to_leave);
  if (!failure.ok()) beat.set_failure(std::string(failure.message()));
}

BeatCore::Verdict BeatCore::OnReply(const absl::StatusOr<HeartbeatReply>& reply, absl::Time now) {
  answered_ = std::min(now, answered_ + own_pauses_.Pass(now));
  const absl::Duration silence = now - answered_;
  const bool lost = IsSilence(reply.status());
  // The failure was reported, or it can no longer be reported.
  if (!failure_.ok() && (!lost || silence > tell_patience_)) return {.end = failure_};
  if (lost) return OnSilence(silence);
  if (!reply.ok()) return {.end = reply.status()};
  answered_ = now;
  return OnAnswer(*reply);
}

BeatCore::Verdict BeatCore::OnAnswer(const HeartbeatReply& reply) {
  Verdict verdict;
  verdict.answers_again = std::exchange(silence_told_, false);
  if (reply.phase() == DONE) {
    verdict.end = absl::OkStatus();
  } else if (reply.phase() == FAILED) {
    verdict.end = absl::AbortedError(reply.failure());
  } else if (reply.leave() && reply.replace()) {
    verdict.end = absl::AbortedError("this node has left the job, which waits for a replacement");
  } else if (reply.leave()) {
    verdict.end = absl::OkStatus();
    verdict.event = Event::kLeft;
  }
  verdict.running = !verdict.end.has_value();
  return verdict;
}

BeatCore::Verdict BeatCore::OnSilence(absl::Duration silence) {
  if (silence > patience_) {
    const absl::Duration shown = absl::Floor(silence, absl::Milliseconds(100));
    return {.end = absl::UnavailableError(
                absl::StrCat("has not replied for ", absl::FormatDuration(shown))),
            .event = Event::kGaveUp};
  }
  if (silence <= kSilence || std::exchange(silence_told_, true)) return {};
  return {.event = Event::kSilence};
}

bool BeatCore::TakesView(const HeartbeatReply& reply) {
  if (!reply.has_view() || reply.view().number() <= known_view_) return false;
  known_view_ = reply.view().number();
  return true;
}

}  // namespace tug
