#ifndef TUG_BASE_OWN_PAUSES_H_
#define TUG_BASE_OWN_PAUSES_H_

#include "absl/time/time.h"

namespace tug {

// Notices that this process stood still itself: SIGSTOP, a frozen control group, a virtual machine
// that was paused. Nobody could be heard meanwhile, so that time is not counted as anybody's
// silence. For a loop that comes by often. Not thread-safe.
class OwnPauses {
 public:
  // A longer gap between two passes is a pause.
  explicit OwnPauses(absl::Duration longest_gap) : longest_gap_(longest_gap) {}

  // The loop comes by. Returns how long the process stood still since the last time; 0: it did not.
  absl::Duration Pass(absl::Time now) {
    const absl::Duration gap = last_ == absl::InfinitePast() ? absl::ZeroDuration() : now - last_;
    last_ = now;
    return gap > longest_gap_ ? gap : absl::ZeroDuration();
  }

 private:
  const absl::Duration longest_gap_;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace tug

#endif  // TUG_BASE_OWN_PAUSES_H_
