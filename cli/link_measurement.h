#ifndef TUG_CLI_LINK_MEASUREMENT_H_
#define TUG_CLI_LINK_MEASUREMENT_H_

// What the links between ranks cost, measured for the alpha-beta model (collective/cost.h).
//
//   1. Messages of kLinkBytes, each size in turn, all of that `runs` times: every rank sends to the
//      next one and receives from the one before, all at once, as in a collective. A size's time is
//      the median.
//   2. alpha and beta are fitted to those (collective/link_fit.h). They are of payload bytes:
//      headers of messages, TCP, IP and Ethernet are part of what a byte takes.
//   3. gamma is the median of the sum in memory, by all ranks at once.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/collective_ranks.h"
#include "collective/cost.h"
#include "collective/link_fit.h"

namespace tug {

inline constexpr uint64_t kLinkBytes[] = {256,      1 << 10,   4 << 10, 16 << 10,
                                          64 << 10, 256 << 10, 1 << 20, 4 << 20};

struct LinkMeasurement {
  LinkCost cost;
  std::vector<TimedMessage> messages;  // medians
};

// Of each size `runs` runs of `seconds`, at least a message each. REQUIRES: kLinkBytes are of whole
// elements, and the ranks' buffers hold the largest of all ranks.
absl::StatusOr<LinkMeasurement> MeasureLink(CollectiveRanks& ranks, double seconds, int runs);

// How many calls of `seconds_of_one` fill a run: at least one, at most 10,000.
uint64_t CallsIn(double wanted_seconds, double seconds_of_one);

}  // namespace tug

#endif  // TUG_CLI_LINK_MEASUREMENT_H_
