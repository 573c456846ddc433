// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_ELAPSED_H_
#define TUG_BASE_ELAPSED_H_

#include "absl/time/time.h"
#include "base/time_source.h"

namespace tug {

// Adds its lifetime in seconds to `sum`. Null `time`: adds nothing. REQUIRES: `time` and `sum`
// outlive it. Not thread-safe.
class ElapsedSeconds {
 public:
  ElapsedSeconds(const TimeSource* time, double& sum)
      : time_(time), sum_(sum), begin_(time == nullptr ? absl::Time() : time->Now()) {}
  ~ElapsedSeconds() {
    if (time_ != nullptr) sum_ += absl::ToDoubleSeconds(time_->Now() - begin_);
  }
  ElapsedSeconds(const ElapsedSeconds&) = delete;
  ElapsedSeconds& operator=(const ElapsedSeconds&) = delete;

 private:
  const TimeSource* const time_;
  double& sum_;
  const absl::Time begin_;
};

}  // namespace tug

#endif  // TUG_BASE_ELAPSED_H_
