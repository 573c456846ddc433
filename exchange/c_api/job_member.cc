// SPDX-License-Identifier: Apache-2.0
#include "exchange/c_api/job_member.h"

#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "blocks/worker_place.h"
#include "control/heartbeat_loop.h"
#include "control/join_job.h"

namespace tug {

absl::StatusOr<std::unique_ptr<JobMember>> JobMember::Join(
    std::unique_ptr<ControlClient> client, const BlockTable& blocks,
    std::function<void(const absl::Status&)> on_end) {
  RegisterRequest request = ThisProcess(WORKER);
  *request.mutable_blocks() = blocks;
  ASSIGN_OR_RETURN(std::optional<RegisterReply> joined, JoinJob(*client, request));
  if (!joined.has_value()) {
    return absl::FailedPreconditionError(
        "the job has ended; this worker was not needed as a replacement");
  }
  return std::unique_ptr<JobMember>(
      new JobMember(std::move(client), *std::move(joined), std::move(on_end)));
}

JobMember::JobMember(std::unique_ptr<ControlClient> client, RegisterReply registered,
                     std::function<void(const absl::Status&)> on_end)
    : client_(std::move(client)),
      registered_(std::move(registered)),
      on_end_(std::move(on_end)),
      core_(registered_.config(), board_),
      thread_([this] {
        const absl::Status end = Beat();
        {
          absl::MutexLock lock(&mutex_);
          end_ = end;
        }
        on_end_(end);
      }) {}

JobMember::~JobMember() {
  Leave(absl::CancelledError("the program ended before the job's last step"));
  thread_.join();
}

absl::Status JobMember::Beat() {
  HeartbeatCallbacks callbacks;
  callbacks.report = [this](HeartbeatRequest& beat) {
    absl::MutexLock lock(&mutex_);
    board_.AddTo(beat);
    beat.set_ready(ready_);
    NodeCounters& counters = *beat.mutable_counters();
    counters.set_peak_memory_bytes(memory_.Sample(ready_ ? shared_bytes_() : 0));
    if (ready_) count_(counters);
  };
  callbacks.on_view = [this](const View& view) {
    absl::MutexLock lock(&mutex_);
    view_ = view;
    core_.SetPlace(PlaceOf(view, registered_.node_id()));
    return absl::OkStatus();
  };
  callbacks.on_reply = [this](const HeartbeatReply& reply, const HeartbeatRequest& sent) {
    absl::MutexLock lock(&mutex_);
    core_.OnReply(reply, sent);
  };
  callbacks.failure = [this] {
    absl::MutexLock lock(&mutex_);
    return leaving_;
  };
  return BeatUntilEnd(*client_, registered_, callbacks);
}

absl::Status JobMember::WhyEnded() const {
  if (!end_->ok()) return *end_;
  return absl::FailedPreconditionError(
      "the job was stopped before it started: start the coordinator again for another run");
}

absl::StatusOr<View> JobMember::WaitForView() {
  absl::MutexLock lock(&mutex_);
  const auto there = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return view_.has_value() || end_.has_value();
  };
  mutex_.Await(absl::Condition(&there));
  if (end_.has_value()) return WhyEnded();
  return *view_;
}

void JobMember::SetReady(std::function<uint64_t()> shared_bytes,
                         std::function<void(NodeCounters&)> count) {
  absl::MutexLock lock(&mutex_);
  shared_bytes_ = std::move(shared_bytes);
  count_ = std::move(count);
  ready_ = true;
}

absl::Status JobMember::WaitForGo() {
  absl::MutexLock lock(&mutex_);
  const auto there = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return core_.go() || end_.has_value();
  };
  mutex_.Await(absl::Condition(&there));
  return end_.has_value() ? WhyEnded() : absl::OkStatus();
}

absl::StatusOr<bool> JobMember::BeginStep(uint64_t clock) {
  absl::MutexLock lock(&mutex_);
  const auto decided = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return end_.has_value() || core_.MayBegin(clock) != ProgramCore::Verdict::kWait;
  };
  mutex_.Await(absl::Condition(&decided));
  if (end_.has_value() && !end_->ok()) return *end_;
  return !end_.has_value() && core_.TryBegin(clock) == ProgramCore::Verdict::kBegin;
}

ExchangeSchedule JobMember::schedule() const {
  absl::MutexLock lock(&mutex_);
  return core_.schedule();
}

bool JobMember::pulls_once_more() const {
  absl::MutexLock lock(&mutex_);
  return core_.pulls_once_more();
}

PushRequest JobMember::PushAt(uint32_t block, uint64_t clock) const {
  absl::MutexLock lock(&mutex_);
  return core_.PushAt(block, clock);
}

PullRequest JobMember::PullAt(uint32_t block, uint64_t clock) const {
  absl::MutexLock lock(&mutex_);
  return core_.PullAt(block, clock);
}

void JobMember::Leave(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (leaving_.ok()) leaving_ = why;
}

absl::Status JobMember::Finish() {
  absl::MutexLock lock(&mutex_);
  core_.Finish();
  const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return end_.has_value(); };
  mutex_.Await(absl::Condition(&ended));
  return *end_;
}

}  // namespace tug
