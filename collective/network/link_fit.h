// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_NETWORK_LINK_FIT_H_
#define TUG_COLLECTIVE_NETWORK_LINK_FIT_H_

#include <cstdint>
#include <span>

#include "collective/schedules/cost.h"

namespace tug {

struct TimedMessage {
  uint64_t bytes = 0;
  double seconds = 0;
};

// Fits alpha and beta of alpha + n beta to the measured times by least squares of the relative
// error, so that short messages count as much as long ones. Neither is negative; gamma stays 0.
// Pure. REQUIRES: at least two different sizes, times above 0.
LinkCost FitLink(std::span<const TimedMessage> messages);

}  // namespace tug

#endif  // TUG_COLLECTIVE_NETWORK_LINK_FIT_H_
