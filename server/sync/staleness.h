// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SYNC_STALENESS_H_
#define TUG_SERVER_SYNC_STALENESS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "proto/job.pb.h"

namespace tug {

// Factor on the step size for a staleness of t updates (sync.staleness_scaling). It scales the
// step, not the gradient, since Adam would cancel a factor on the gradient. INVERSE: Zhang et al.
// 2016, "Staleness-aware async-SGD for distributed deep learning", equation 6. Pure, thread-safe.
inline float StalenessScale(SyncConfig::StalenessScaling scaling, uint64_t t) {
  const auto divisor = static_cast<double>(std::max<uint64_t>(t, 1));
  switch (scaling) {
    case SyncConfig::SCALING_DEFAULT:
    case SyncConfig::INVERSE:
      return static_cast<float>(1.0 / divisor);
    case SyncConfig::INVERSE_SQRT:
      return static_cast<float>(1.0 / std::sqrt(divisor));
    default:
      return 1.0f;
  }
}

// Number of updates with staleness 0, 1, 2, ...; entry 255: that or more.
using StalenessHistogram = std::array<uint64_t, 256>;

inline void CountStaleness(StalenessHistogram& histogram, uint64_t t) {
  ++histogram[std::min<uint64_t>(t, histogram.size() - 1)];
}

}  // namespace tug

#endif  // TUG_SERVER_SYNC_STALENESS_H_
