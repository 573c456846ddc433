// SPDX-License-Identifier: Apache-2.0
#include "model/backend/stream_spans.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "base/status_macros.h"

namespace tug {

using kernels::cuda::Event;
using kernels::cuda::EventUse;

namespace {

// Time in which the clocks drift little, and times between events (floats in milliseconds) are
// accurate to less than a microsecond.
constexpr int64_t kClockHoldsNs = 2'000'000'000;

}  // namespace

void StreamSpans::Announce(TraceTrack& track, const TraceEvent& about) {
  announced_ = track.Wants(about.clock) ? &track : nullptr;
  about_ = about;
}

absl::Status StreamSpans::Begin() {
  if (announced_ == nullptr) return absl::OkStatus();
  const bool is_old = queued_.empty() && announced_->NowNs() - origin_ns_ > kClockHoldsNs;
  if (!origin_.has_value() || is_old) RETURN_IF_ERROR(SetClock());
  if (kept_.empty()) {
    ASSIGN_OR_RETURN(Event begin, Event::Create(EventUse::kTime));
    ASSIGN_OR_RETURN(Event end, Event::Create(EventUse::kTime));
    open_.emplace(Span{.begin = std::move(begin), .end = std::move(end)});
  } else {
    open_.emplace(std::move(kept_.back()));
    kept_.pop_back();
  }
  open_->track = std::exchange(announced_, nullptr);
  open_->about = about_;
  return open_->begin.Record(stream_);
}

absl::Status StreamSpans::End() {
  if (!open_.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(open_->end.Record(stream_));
  queued_.push_back(*std::exchange(open_, std::nullopt));
  return absl::OkStatus();
}

absl::Status StreamSpans::SetClock() {
  ASSIGN_OR_RETURN(Event origin, Event::Create(EventUse::kTime));
  RETURN_IF_ERROR(origin.Record(stream_));
  RETURN_IF_ERROR(origin.Synchronize());
  origin_ns_ = announced_->NowNs();
  origin_ = std::move(origin);
  return absl::OkStatus();
}

absl::Status StreamSpans::Collect() {
  while (!queued_.empty()) {
    Span& span = queued_.front();
    ASSIGN_OR_RETURN(const bool done, span.end.IsDone());
    if (!done) return absl::OkStatus();
    ASSIGN_OR_RETURN(const absl::Duration begin, TimeBetween(*origin_, span.begin));
    ASSIGN_OR_RETURN(const absl::Duration end, TimeBetween(*origin_, span.end));
    // Realigned clocks may step back a little.
    span.about.begin_ns = std::max(origin_ns_ + absl::ToInt64Nanoseconds(begin), last_ns_);
    span.about.end_ns = std::max(origin_ns_ + absl::ToInt64Nanoseconds(end), span.about.begin_ns);
    last_ns_ = span.about.end_ns;
    span.track->Add(span.about);
    kept_.push_back(std::move(span));
    queued_.pop_front();
  }
  return absl::OkStatus();
}

}  // namespace tug
