// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_STOP_WISHES_H_
#define TUG_BASE_STOP_WISHES_H_

#include "absl/time/time.h"

namespace tug {

// Counts requests to stop, not signals. One request may arrive as several signals: `timeout` sends
// two, systemd signals every process, and a launcher forwards its signal to processes that received
// one themselves. Not thread-safe.
class StopWishes {
 public:
  // A signal that follows within kApart belongs to the same request.
  static constexpr absl::Duration kApart = absl::Seconds(1);

  // Records a signal at `now`, from a clock that never goes back (RealTime). Returns whether it is
  // a new request.
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
