// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_OWN_PAUSES_H_
#define TUG_BASE_OWN_PAUSES_H_

#include "absl/time/time.h"

namespace tug {

// Detects that this process itself was stopped: by SIGSTOP, a frozen control group, or a paused
// virtual machine. It received no messages in that time, so a loop that times out peers does not
// count it against them. The loop calls Pass in every iteration. Not thread-safe.
class OwnPauses {
 public:
  // A gap between two calls of Pass that is longer than `longest_gap` is a pause.
  explicit OwnPauses(absl::Duration longest_gap) : longest_gap_(longest_gap) {}

  // Returns how long the process was stopped since the last call; 0 if it was not.
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
