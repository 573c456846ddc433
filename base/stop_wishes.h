#ifndef TUG_BASE_STOP_WISHES_H_
#define TUG_BASE_STOP_WISHES_H_

#include "absl/time/time.h"

namespace tug {

// Counts wishes to stop rather than signals: one wish may come as several signals, such as that of
// `timeout`, of systemd or of a launcher that passes on what this process got itself. Not
// thread-safe.
class StopWishes {
 public:
  // The least time in which a person wishes again.
  static constexpr absl::Duration kApart = absl::Seconds(1);

  // A signal came. Whether it is a wish of its own.
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
