#ifndef TUG_SIMULATE_STALL_CLOCK_H_
#define TUG_SIMULATE_STALL_CLOCK_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace tug {

// Measures how long a simulated job makes no progress though nothing befalls it. Not thread-safe.
class StallClock {
 public:
  // A fault begins; one that lasts ends.
  void OnFault(absl::Time now) {
    ++under_way_;
    since_ = now;
  }
  void OnFaultOver(absl::Time now) {
    --under_way_;
    since_ = now;
  }
  // Something happens that is no progress, and that the job takes time to get over.
  void OnDisturbed(absl::Time now) { since_ = now; }
  void OnProgress(absl::Time now) {
    if (under_way_ == 0) longest_ = std::max(longest_, now - since_);
    since_ = now;
  }

  absl::Duration longest() const { return longest_; }

 private:
  uint32_t under_way_ = 0;
  absl::Time since_ = absl::UnixEpoch();
  absl::Duration longest_;
};

}  // namespace tug

#endif  // TUG_SIMULATE_STALL_CLOCK_H_
