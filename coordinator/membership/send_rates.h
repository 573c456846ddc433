// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_SEND_RATES_H_
#define TUG_COORDINATOR_MEMBERSHIP_SEND_RATES_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace tug {

class NodeCounters;

// Bytes per second that a node sends through sockets and through shared memory, from the totals in
// its heartbeats. Averages over at least a second: one heartbeat interval may have a whole step's
// pushes or none. Totals that fall (the node has a new exchange) start a new average.
class SendRates {
 public:
  void Add(const NodeCounters& totals, absl::Time now);
  double sockets() const { return sockets_.rate; }
  double shared_memory() const { return shared_memory_.rate; }

 private:
  struct Medium {
    uint64_t bytes = 0;  // total at `since_`
    double rate = 0;
  };

  Medium sockets_, shared_memory_;
  std::optional<absl::Time> since_;  // end of the last average
};

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_SEND_RATES_H_
