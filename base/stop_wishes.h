#ifndef TUG_BASE_STOP_WISHES_H_
#define TUG_BASE_STOP_WISHES_H_

#include "absl/time/time.h"

namespace tug {

// Counts requests to stop rather than signals. One request may arrive as several signals: `timeout`
// sends two, systemd signals every process, and a launcher passes its signal on to processes that
// got one themselves. Not thread-safe.
class StopWishes {
 public:
  // A signal that follows sooner belongs to the same request.
  static constexpr absl::Duration kApart = absl::Seconds(1);

  // A signal arrived at `now`, of a clock that never goes back (RealTime). Returns whether it is a
  // new request.
  bool Add(absl::Time now) {
    if (now < newest_ + kApart) return false;
    newest_ = now;
    ++count_;
    return true;
  }
  int count() const { return count_; }

 private:
  absl::Time newest_ = absl::InfinitePast();
  int count_ = 0;
};

}  // namespace tug

#endif  // TUG_BASE_STOP_WISHES_H_
