// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_STALL_CLOCK_H_
#define TUG_LAB_SIMULATE_STALL_CLOCK_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace tug {

// Measures how long a simulated job makes no progress while no fault is active. Not thread-safe.
class StallClock {
 public:
  // Begin and end of a fault that lasts.
  void OnFault(absl::Time now) {
    ++under_way_;
    since_ = now;
  }
  void OnFaultOver(absl::Time now) {
    --under_way_;
    since_ = now;
  }
  // A disturbance that is not progress, and that the job needs time to recover from.
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

#endif  // TUG_LAB_SIMULATE_STALL_CLOCK_H_
