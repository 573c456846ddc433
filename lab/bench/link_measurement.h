// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_BENCH_LINK_MEASUREMENT_H_
#define TUG_LAB_BENCH_LINK_MEASUREMENT_H_

// Measures the links between ranks for the alpha-beta model (collective/schedules/cost.h).
//
//   1. Messages of kLinkBytes, each size in turn, all of that `runs` times: every rank sends to the
//      next one and receives from the previous one, all at once, as in a collective. A size's time
//      is the median.
//   2. alpha and beta are fitted to these times (collective/network/link_fit.h). They count payload
//      bytes: headers of messages, TCP, IP and Ethernet are part of the cost of a byte.
//   3. gamma is the median of the sum in memory, by all ranks at once.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "collective/network/link_fit.h"
#include "collective/schedules/cost.h"
#include "lab/bench/collective_ranks.h"

namespace tug {

inline constexpr uint64_t kLinkBytes[] = {256,      1 << 10,   4 << 10, 16 << 10,
                                          64 << 10, 256 << 10, 1 << 20, 4 << 20};

struct LinkMeasurement {
  LinkCost cost;
  std::vector<TimedMessage> messages;  // medians
};

// Measures `runs` runs of `seconds` per size, of at least one message each. REQUIRES: kLinkBytes
// are whole elements, and the ranks' buffers hold the largest of all ranks.
absl::StatusOr<LinkMeasurement> MeasureLink(CollectiveRanks& ranks, double seconds, int runs);

// Number of calls of `seconds_of_one` that fill a run: at least 1, at most 10,000.
uint64_t CallsIn(double wanted_seconds, double seconds_of_one);

}  // namespace tug

#endif  // TUG_LAB_BENCH_LINK_MEASUREMENT_H_
