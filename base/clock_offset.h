// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_CLOCK_OFFSET_H_
#define TUG_BASE_CLOCK_OFFSET_H_

// Offset of another process's clock from ours, estimated from timestamps of requests and replies.
//
// In one exchange, the request is sent at s, answered at a (by their clock), and the reply arrives
// at r. If both directions took equally long, the peer answered at (s + r) / 2 by our clock, so
//   offset = a - (s + r) / 2,  with an error of at most (r - s) / 2.
// The fastest exchange is therefore the most accurate. Clocks drift, so the error of a sample grows
// by kDriftPpm of its age. Source: Mills 1991, "Internet Time Synchronization: The Network Time
// Protocol", section 3 (with one timestamp of the peer instead of two) and section 4 (the filter).

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace tug {

// Pure. Not thread-safe. All times in ns.
class ClockOffset {
 public:
  static constexpr size_t kSamples = 64;    // newest samples kept
  static constexpr int64_t kDriftPpm = 50;  // between two quartz clocks

  struct Estimate {
    int64_t offset_ns = 0;  // their time minus ours
    int64_t error_ns = 0;   // upper bound
  };

  // Ignores a reply received before its request was sent.
  void Add(int64_t sent_ns, int64_t answered_ns, int64_t received_ns);
  // Offset at `now_ns` of our clock; none before the first sample.
  std::optional<Estimate> At(int64_t now_ns) const;

 private:
  struct Sample {
    int64_t at_ns = 0;
    Estimate estimate;
  };
  std::deque<Sample> samples_;
};

}  // namespace tug

#endif  // TUG_BASE_CLOCK_OFFSET_H_
