// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_TIME_SOURCE_H_
#define TUG_BASE_TIME_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"

namespace tug {

// Clock of a loop, so that the same classes run in real and in simulated time.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  // Never goes back.
  virtual absl::Time Now() const = 0;
};

// The wall clock at construction, advanced by the monotonic clock: stepping the wall clock fires no
// timeout. Thread-safe.
class RealTime final : public TimeSource {
 public:
  RealTime();
  absl::Time Now() const override;

 private:
  absl::Time start_;
  int64_t start_monotonic_ns_;
};

// Reads a RealTime of this process, for deadlines of code without a TimeSource. deploy/tidy forbids
// absl::Now() elsewhere, since the wall clock may step. Thread-safe.
absl::Time SteadyNow();

// Virtual time: constant until the next event runs, then jumps to it. Events run in order of (time,
// order of scheduling), so a run is a function of what was scheduled. Starts at the Unix epoch. Not
// thread-safe.
class SimulatedTime final : public TimeSource {
 public:
  SimulatedTime() = default;
  SimulatedTime(const SimulatedTime&) = delete;
  SimulatedTime& operator=(const SimulatedTime&) = delete;

  absl::Time Now() const override { return now_; }

  // Runs `event` at Now() + delay; it may schedule others. REQUIRES: delay >= 0.
  void Schedule(absl::Duration delay, std::function<void()> event);

  // Runs the next event; false if none is scheduled.
  bool RunNext();

  // Runs all events due up to and including `deadline`; then Now() is `deadline`.
  void RunUntil(absl::Time deadline);

  // Runs events until `done()` holds (called before each event) or the next event is after
  // `deadline`. Returns whether `done()` holds. If no events remain and `done()` is false, time
  // does not advance: a deadlock shows its instant.
  bool RunUntil(const std::function<bool()>& done, absl::Time deadline);

  size_t pending() const { return events_.size(); }

 private:
  bool RunNextUpTo(absl::Time deadline);

  absl::Time now_ = absl::UnixEpoch();
  uint64_t next_sequence_ = 0;
  std::map<std::pair<absl::Time, uint64_t>, std::function<void()>> events_;
};

}  // namespace tug

#endif  // TUG_BASE_TIME_SOURCE_H_
