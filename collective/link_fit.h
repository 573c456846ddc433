#ifndef TUG_COLLECTIVE_LINK_FIT_H_
#define TUG_COLLECTIVE_LINK_FIT_H_

#include <cstdint>
#include <span>

#include "collective/cost.h"

namespace tug {

struct TimedMessage {
  uint64_t bytes = 0;
  double seconds = 0;
};

// alpha and beta of which alpha + n beta is nearest to the measured times, by least squares of the
// relative error (so that short messages count as much as long ones); neither is negative. gamma
// stays 0. Pure. REQUIRES: messages of two sizes at least, times above 0.
LinkCost FitLink(std::span<const TimedMessage> messages);

}  // namespace tug

#endif  // TUG_COLLECTIVE_LINK_FIT_H_
