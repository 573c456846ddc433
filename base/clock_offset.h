#ifndef TUG_BASE_CLOCK_OFFSET_H_
#define TUG_BASE_CLOCK_OFFSET_H_

// How far the clock of another process is ahead of ours, from the times of requests and answers.
//
// Of one exchange: sent at s, answered (their clock) at a, answer here at r. Had both ways taken
// equally long, they would have answered at (s + r) / 2 of our clock, so
//   offset = a - (s + r) / 2,  wrong by at most (r - s) / 2.
// So the fastest exchange says most. Clocks drift apart, so an older one is worth less: its error
// grows by kDriftPpm of its age. Source: Mills 1991, "Internet Time Synchronization: The Network
// Time Protocol", section 3 (with one time of the answerer in place of two) and section 4 (the
// filter).

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace tug {

// Pure. Not thread-safe. All times in ns.
class ClockOffset {
 public:
  static constexpr size_t kSamples = 64;    // the newest are kept
  static constexpr int64_t kDriftPpm = 50;  // of two quartz clocks against one another

  struct Estimate {
    int64_t offset_ns = 0;  // add it to our time for theirs
    int64_t error_ns = 0;   // at most
  };

  // An answer that came before its request was sent says nothing: left out.
  void Add(int64_t sent_ns, int64_t answered_ns, int64_t received_ns);
  // The offset at `now_ns` of our clock; none before the first exchange.
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
