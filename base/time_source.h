#ifndef TUG_BASE_TIME_SOURCE_H_
#define TUG_BASE_TIME_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"

namespace tug {

// Where a loop reads the time from, so that the same classes run in real and in simulated time.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  // Never goes back.
  virtual absl::Time Now() const = 0;
};

// The wall clock as of construction, then the monotonic clock: a stepped wall clock fires no
// timeout. Thread-safe.
class RealTime final : public TimeSource {
 public:
  RealTime();
  absl::Time Now() const override;

 private:
  absl::Time start_;
  int64_t start_monotonic_ns_;
};

// A RealTime of this process, for deadlines where no TimeSource is handed over. deploy/tidy keeps
// absl::Now() out of all else: it may step. Thread-safe.
absl::Time SteadyNow();

// Virtual time: it stands still until the next event is run, then jumps to it. Events run in order
// of (time, order of scheduling), so a run is a function of what was scheduled. Starts at the Unix
// epoch. Not thread-safe.
class SimulatedTime final : public TimeSource {
 public:
  SimulatedTime() = default;
  SimulatedTime(const SimulatedTime&) = delete;
  SimulatedTime& operator=(const SimulatedTime&) = delete;

  absl::Time Now() const override { return now_; }

  // Runs `event` at Now() + delay; it may schedule others. REQUIRES: delay >= 0.
  void Schedule(absl::Duration delay, std::function<void()> event);

  // Runs the next event; false if there is none.
  bool RunNext();

  // Runs all events due up to and including `deadline`; then Now() is `deadline`.
  void RunUntil(absl::Time deadline);

  // Runs events until `done()` holds (asked before each event) or the next event lies after
  // `deadline`. Returns whether `done()` holds. With nothing left to run and `done()` false, time
  // stays where it is: a deadlock shows at its instant.
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
