#ifndef TUG_COLLECTIVE_SCHEDULE_H_
#define TUG_COLLECTIVE_SCHEDULE_H_

// What each rank of a collective sends, receives and sums, as pure data: an algorithm is a function
// (rank, world) -> Schedule in a file of its own, with its paper and its alpha-beta cost
// (cost.h). One executor (communicator.h) runs all of them; symbolic_run.h proves them.
//
// A buffer is cut into `parts` parts, as equal as they can be (PartBegin). Steps have the same
// numbers on all ranks: what rank a sends to b in its step k, b receives from a in its step k, the
// same parts, in the same order of transfers. Of a step
//  - sends carry what the parts hold before any receive of this step;
//  - receives are of parts disjoint from each other.
// A rank may be ahead of others: a part may be sent as soon as all receives into it, of steps
// before, are done; nothing waits for a step as a whole.

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

struct Schedule {
  uint32_t parts = 1;
  std::vector<Step> steps;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// First element of a part, of so many elements: parts differ by one element at most.
inline constexpr uint64_t PartBegin(uint64_t elements, uint32_t parts, uint32_t part) {
  const uint64_t each = elements / parts;
  const uint64_t rest = elements % parts;
  return part * each + (part < rest ? part : rest);
}

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULE_H_
