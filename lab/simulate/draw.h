// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_DRAW_H_
#define TUG_LAB_SIMULATE_DRAW_H_

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace tug {

// Random numbers that are a function of the seed; the standard library's distributions may differ
// by platform. Not thread-safe.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  // From 0 to n - 1.
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  uint32_t From(uint32_t low, uint32_t high) { return low + Below(high - low + 1); }
  bool OneIn(uint32_t n) { return Below(n) == 0; }
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    const int64_t range = absl::ToInt64Microseconds(high - low);
    return low + absl::Microseconds(static_cast<int64_t>(random_() % static_cast<uint64_t>(range)));
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_DRAW_H_
