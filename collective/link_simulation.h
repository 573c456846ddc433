#ifndef TUG_COLLECTIVE_LINK_SIMULATION_H_
#define TUG_COLLECTIVE_LINK_SIMULATION_H_

// How long a schedule takes on a network of given links, event by event, in virtual time. Beside a
// cost formula, which is of one switch, it shows what a torus or a mesh makes of its own links.
//
// A message of n bytes takes alpha + n beta, and n gamma more where it is summed. It leaves by a
// port of its sender and arrives at a port of its receiver; a port has one message at a time, the
// receiver's until the sum is made. A message begins as soon as
//   - what it carries is there: the receives into its parts of the steps before are done, and those
//     that its receiver has before it for the same parts;
//   - the message before it between the two ranks has begun;
//   - both ports are free. Of several that could begin, the one of the earliest step goes first.
// Left out: what memory to the side costs (write hazards), and messages that share a link
// elsewhere than in its ports.

#include <cstdint>
#include <span>

#include "collective/schedule.h"
#include "collective/topology.h"

namespace tug {

// Seconds until the last receive is done. Pure. REQUIRES: the family keeps the contract of
// schedule.h; there is a path for each of its messages.
double SimulatedSeconds(std::span<const CollectiveSchedule> family, const Topology& topology,
                        uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_LINK_SIMULATION_H_
