// SPDX-License-Identifier: Apache-2.0
#include "base/time_source.h"

#include <chrono>

#include "absl/time/clock.h"
#include "base/check.h"

namespace tug {
namespace {

int64_t MonotonicNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

RealTime::RealTime() : start_(absl::Now()), start_monotonic_ns_(MonotonicNanoseconds()) {}

absl::Time RealTime::Now() const {
  return start_ + absl::Nanoseconds(MonotonicNanoseconds() - start_monotonic_ns_);
}

absl::Time SteadyNow() {
  static const RealTime time;
  return time.Now();
}

void SimulatedTime::Schedule(absl::Duration delay, std::function<void()> event) {
  TUG_CHECK_GE(delay, absl::ZeroDuration());
  events_.emplace(std::pair(now_ + delay, next_sequence_++), std::move(event));
}

bool SimulatedTime::RunNext() { return RunNextUpTo(absl::InfiniteFuture()); }

void SimulatedTime::RunUntil(absl::Time deadline) {
  TUG_CHECK_GE(deadline, now_);
  while (RunNextUpTo(deadline)) {
  }
  now_ = deadline;
}

bool SimulatedTime::RunUntil(const std::function<bool()>& done, absl::Time deadline) {
  while (!done()) {
    if (!RunNextUpTo(deadline)) return false;
  }
  return true;
}

bool SimulatedTime::RunNextUpTo(absl::Time deadline) {
  if (events_.empty() || events_.begin()->first.first > deadline) return false;
  // Removed first: the event may schedule others.
  auto event = events_.extract(events_.begin());
  now_ = event.key().first;
  event.mapped()();
  return true;
}

}  // namespace tug
