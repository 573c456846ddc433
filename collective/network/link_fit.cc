// SPDX-License-Identifier: Apache-2.0
#include "collective/network/link_fit.h"

#include <algorithm>

#include "base/check.h"

namespace tug {

LinkCost FitLink(std::span<const TimedMessage> messages) {
  // Minimises the sum of (alpha / t + beta n / t - 1)^2.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const TimedMessage& message : messages) {
    const double a = 1 / message.seconds;
    const double b = static_cast<double>(message.bytes) / message.seconds;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    a1 += a;
    b1 += b;
  }
  const double determinant = aa * bb - ab * ab;
  TUG_CHECK(determinant > 0);
  LinkCost cost;
  cost.alpha = (a1 * bb - b1 * ab) / determinant;
  cost.beta = (b1 * aa - a1 * ab) / determinant;
  if (cost.alpha < 0) cost = {.alpha = 0, .beta = b1 / bb};
  if (cost.beta < 0) cost = {.alpha = a1 / aa, .beta = 0};
  return cost;
}

}  // namespace tug
