// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_SCHEDULE_H_
#define TUG_COLLECTIVE_SCHEDULES_SCHEDULE_H_

// Sends, receives and sums of each rank of a collective, as pure data. An algorithm is a function
// (rank, world) -> CollectiveSchedule in its own file, with its paper and its alpha-beta cost
// (cost.h). One executor (communicator.h) runs all of them; schedule_proof.h proves them.
//
// A buffer is cut into `parts` parts, as equal as possible (PartBegin). Steps have the same numbers
// on all ranks: what rank a sends to b in its step k, b receives from a in its step k: the same
// parts, in the same order of transfers. Within a step
//  - sends carry what the parts hold before any receive of this step;
//  - receives are of disjoint parts.
// A rank may be ahead of others: a part may be sent as soon as all receives into it of earlier
// steps are done; nothing waits for a whole step. Messages between two ranks keep the order of
// steps and, within a step, of transfers.
//
// A transfer has at least one part. A buffer may have fewer elements than parts: a transfer of
// empty parts is not sent, and no rank waits for it. A world of one rank has no steps.
//
// There are two ways to pipeline. All of this holds for each element, so an executor may cut the
// messages of any algorithm into chunks: chunks of several steps are then in flight at once.
// binary_tree.h also has a number of parts, with separate steps for each, so that parts move up and
// down alternately. Parts are cut into chunks as in other algorithms, so chunks larger than a part
// have no effect. Cost formulas assume messages that are not cut into chunks, with one exception
// (hierarchical.h).
//
// Every rank's buffer has all parts, whether it needs them or not. In all-gather and reduce-scatter
// part r belongs to rank r; on a rank that ends with only its own part, the other parts are scratch
// with unspecified contents. A rank is done when its receives are written and its sends released.
//
// Sends that are read in place. A send is released when its peer has read it; until then its data
// must not change. If a peer reads the buffer itself (shared memory), a receive may have to wait
// for that before it writes:
//  - often it cannot arrive too early, because it was computed from what the peer has read (ring,
//    halving-doubling: a part comes back only through the ranks that it went to);
//  - otherwise it is a write-after-read hazard, or write hazard. WriteHazards (write_hazards.h)
//    lists which receives wait for which sends of the same or an earlier step; all other receives
//    need not check.
// Only writes wait, never reads: two ranks that send each other the parts that both then sum into
// (recursive doubling) each wait until the other has read. So a payload with a write hazard is read
// into a staging buffer, which releases it, and written from there. Then no two ranks can wait for
// each other, and a receive without a hazard may be summed directly from the peer's memory.

#include <cstdint>
#include <vector>

namespace tug {

struct Transfer {
  uint32_t peer = 0;   // another rank
  uint32_t begin = 0;  // parts [begin, end), not empty
  uint32_t end = 0;
  bool reduces = false;  // receives only: added to the parts; else replaces them

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

struct Step {
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;

  friend bool operator==(const Step&, const Step&) = default;
};

// (Schedule is the message that tells nodes how to cut and queue, proto/control.proto.)
struct CollectiveSchedule {
  uint32_t parts = 1;
  std::vector<Step> steps;
  // Ranks change partners in each step, so messages of a rank that is ahead meet those of another
  // rank at a port: over a network large messages wait for words (port_order.h). The same on all
  // ranks.
  bool takes_turns = false;

  friend bool operator==(const CollectiveSchedule&, const CollectiveSchedule&) = default;
};

// First element of a part of a buffer of `elements` elements. Part sizes differ by at most one
// element.
inline constexpr uint64_t PartBegin(uint64_t elements, uint32_t parts, uint32_t part) {
  const uint64_t each = elements / parts;
  const uint64_t rest = elements % parts;
  return part * each + (part < rest ? part : rest);
}

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_SCHEDULE_H_
