#ifndef TUG_COLLECTIVE_SCHEDULE_H_
#define TUG_COLLECTIVE_SCHEDULE_H_

// What each rank of a collective sends, receives and sums, as pure data: an algorithm is a function
// (rank, world) -> CollectiveSchedule in a file of its own, with its paper and its alpha-beta cost
// (cost.h). One executor (communicator.h) runs all of them; schedule_proof.h proves them.
//
// A buffer is cut into `parts` parts, as equal as they can be (PartBegin). Steps have the same
// numbers on all ranks: what rank a sends to b in its step k, b receives from a in its step k, the
// same parts, in the same order of transfers. Of a step
//  - sends carry what the parts hold before any receive of this step;
//  - receives are of parts disjoint from each other.
// A rank may be ahead of others: a part may be sent as soon as all receives into it, of steps
// before, are done; nothing waits for a step as a whole. Only a message of no parts (barrier) may
// not leave before all receives of the steps before are done. Messages between two ranks keep the
// order of steps and, within a step, of transfers.
//
// A buffer may have fewer elements than parts. A transfer of parts that have no elements is not
// sent, and nobody waits for it; a message of no parts is sent though it carries nothing, since it
// is what others wait for. A world of one rank has no steps.
//
// Two ways to pipeline. All of this holds element by element, so an executor may cut messages into
// chunks, of any algorithm: chunks of several steps are then on their way at once. binary_tree.h
// and mesh_2d.h have a number of parts besides, with steps of their own for each, so that parts go
// up and come down in turns. Parts are cut into chunks as those of other algorithms, so chunks
// larger than a part change nothing. Cost formulas are of messages that are not cut into chunks,
// but for one (hierarchical.h).
//
// Every rank's buffer has all parts, whatever it needs of them: part r is rank r's own in scatter,
// gather, all-gather and reduce-scatter, where the other parts of a rank that is to have only its
// own are scratch and hold anything afterwards. A rank is done when its receives are written and
// its sends let go.
//
// Sends that are read in place. A send is let go when its peer has read it; until then what it
// carries must not change. Where a peer reads the buffer itself (shared memory), a receive may have
// to wait for that before it writes:
//  - often it cannot come too early, because what arrives was made of what the peer has read (ring,
//    halving-doubling: a part comes back only through those that it went to);
//  - else it is a write-after-read hazard, a write hazard for short. WriteHazards (write_hazards.h)
//    tells which receives wait for which sends of the same or an earlier step; all other receives
//    need not ask.
// Only writing waits, never reading: two ranks that send each other the parts that both then sum
// into (recursive doubling) each wait for the other to have read. So what has a write hazard is
// read into memory to the side, which lets it go, and written from there; then no two ranks can
// wait for each other, and a receive without a hazard may be summed where the peer has it.

#include <cstdint>
#include <vector>

namespace tug {

struct Transfer {
  uint32_t peer = 0;   // rank, not one's own
  uint32_t begin = 0;  // parts [begin, end)
  uint32_t end = 0;
  bool reduces = false;  // of a receive: added to what the parts hold, else stored in its place

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

struct Step {
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;

  friend bool operator==(const Step&, const Step&) = default;
};

// (Schedule alone is the message that tells nodes how to cut and queue, proto/control.proto.)
struct CollectiveSchedule {
  uint32_t parts = 1;
  std::vector<Step> steps;
  // All-to-all alone: part p of rank a is at first what a has for p, and then what p had for a. So
  // what leaves part b of rank a arrives in part a of rank b, and `begin` and `end` are parts of
  // one's own buffer. REQUIRES: as many elements in all parts.
  bool transposes = false;
  // A rank turns to others with each step, and so do those, so that messages of a rank that is
  // ahead meet those of another one at a port: over a network large ones wait for words
  // (port_order.h). The same on all ranks.
  bool takes_turns = false;

  friend bool operator==(const CollectiveSchedule&, const CollectiveSchedule&) = default;
};

// First element of a part, of so many elements: parts differ by one element at most.
inline constexpr uint64_t PartBegin(uint64_t elements, uint32_t parts, uint32_t part) {
  const uint64_t each = elements / parts;
  const uint64_t rest = elements % parts;
  return part * each + (part < rest ? part : rest);
}

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULE_H_
