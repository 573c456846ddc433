// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_LINK_RATE_H_
#define TUG_PLAN_LINK_RATE_H_

// The rate of a link, as users write it.

#include <string>

#include "absl/status/statusor.h"

namespace tug {

// "200mbit" -> 2e8 bits per second. Same format as deploy/testbed: a whole number and bit, kbit,
// mbit or gbit. INVALID_ARGUMENT for others.
absl::StatusOr<double> ParseLinkRate(const std::string& text);

// Payload bytes per second of a TCP stream over such a link: 1448 of the 1514 bytes of an Ethernet
// frame.
double PayloadBytesPerSecond(double bits_per_second);

}  // namespace tug

#endif  // TUG_PLAN_LINK_RATE_H_
