// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_NETWORK_LINK_SIMULATION_H_
#define TUG_COLLECTIVE_NETWORK_LINK_SIMULATION_H_

// Simulates a schedule on hosts of one switch, event by event in virtual time: what the cost
// formulas of the algorithms are tested against.
//
// A message of n bytes takes alpha + n beta, and n gamma more if it is summed. It occupies a port
// of its sender and a port of its receiver; a port handles one message at a time, and the
// receiver's stays busy until the sum is made. A message starts as soon as
//   - its data is ready: the receives of earlier steps into its parts are done, as are its
//     receiver's earlier receives into the same parts;
//   - the previous message between the two ranks has started;
//   - both ports are free. Of several candidates, the one of the earliest step goes first.
// Not modelled: the cost of staging buffers (write hazards), and messages that share a link other
// than at its ports.

#include <cstdint>
#include <span>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

// One port per host, shared by its ranks, to other hosts; one port per rank within its host. Ranks
// are placed as in hierarchical.h. REQUIRES: ranks_per_host >= 1.
struct HostLinks {
  LinkCost between_hosts;
  uint32_t ranks_per_host = 1;
  LinkCost within_host;  // not used if hosts have one rank
};

// Seconds until the last receive is done. Pure. REQUIRES: the family keeps the contract of
// schedule.h.
double SimulatedSeconds(std::span<const CollectiveSchedule> family, const HostLinks& links,
                        uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_NETWORK_LINK_SIMULATION_H_
