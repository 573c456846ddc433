#ifndef TUG_COLLECTIVE_MESSAGE_PLAN_H_
#define TUG_COLLECTIVE_MESSAGE_PLAN_H_

// A schedule for a buffer of so many elements: cut into messages, and what each of them waits for.
//
//   1. Every part is cut into cells of at most `chunk_elements`, counted from where it begins.
//   2. A transfer is cut into messages: consecutive cells, as many as are at most `chunk_elements`
//      together. Cells belong to parts, so both ends of a transfer cut alike, and messages of
//      several steps overlap in whole cells.
//   3. Cell by cell, in the order of steps (in a step sends before receives): a message is sent
//      after the receive that wrote the cell last; a receive writes the cell after the receive that
//      wrote it last and after all that was sent of it since then has been read.
//   4. Over a network, a port has one message at a time, as cost.h has it: what a step sends there
//      waits for the last receive of the steps before from each rank there. Else a rank might be
//      sent to by two at once, which share its port, and what is needed first comes as late as what
//      is needed last: halving-doubling of 4 would take 4/3 of its time, of 8 1.4 times.
//       - A step that sends to the same ranks as the step before (trees in parts) waits for those
//         but one step before: what it receives meanwhile covers the way there and back.
//       - In a ring, where a rank sends to one and receives from another, and between two, nobody
//         shares a port: no such waits, and chunks of several steps are on their way.
//   5. A transfer of no parts (barrier) is one message of no cells; it is sent after all receives
//      of earlier steps. A transfer of parts that are all empty is no message: on a buffer of no
//      elements, all schedules but those of a barrier do nothing and wait for nobody.
// Messages from one rank to another are numbered in the order of (step, transfer, first element):
// that number names them on the wire.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "collective/schedule.h"

namespace tug {

struct PlannedMessage {
  uint32_t peer = 0;
  uint32_t step = 0;
  uint32_t number = 0;  // of those from one rank to the other
  bool reduces = false;
  uint64_t begin = 0;  // elements [begin, end); none: of a transfer of no parts
  uint64_t end = 0;
  // The same on both ends: `begin`, or, where the schedule transposes, that from the beginning of
  // the transfer's first part.
  uint64_t place = 0;

  uint64_t elements() const { return end - begin; }
};

// Lists of numbers, one after another.
class NumberLists {
 public:
  std::span<const uint32_t> operator[](uint32_t list) const {
    return std::span(numbers_).subspan(begins_[list], begins_[list + 1] - begins_[list]);
  }
  // From (list, number) pairs, which keep their order within a list.
  static NumberLists From(uint32_t lists, std::span<const std::pair<uint32_t, uint32_t>> pairs);

 private:
  std::vector<uint32_t> begins_;
  std::vector<uint32_t> numbers_;
};

// Of one rank. Constant once made; messages are named by their index in `sends` or `receives`.
struct MessagePlan {
  CollectiveSchedule schedule;
  uint64_t elements = 0;
  uint64_t chunk_elements = 0;

  std::vector<PlannedMessage> sends;     // in the order of steps
  std::vector<PlannedMessage> receives;  // in the order of steps
  // By peer: its messages, in the order of their numbers (indices of `sends`, of `receives`).
  NumberLists sends_to;
  NumberLists receives_from;

  // How many receives (sends) must be done (read) before; one may count several times.
  std::vector<uint32_t> send_waits;           // by send: for receives
  std::vector<uint32_t> receive_waits;        // by receive: for receives
  std::vector<uint32_t> receive_waits_reads;  // by receive: for sends to be read
  // The same the other way round.
  NumberLists sends_after;           // by receive: sends
  NumberLists receives_after;        // by receive: receives
  NumberLists receives_after_reads;  // by send: receives
};

// REQUIRES: chunk_elements > 0. INVALID_ARGUMENT: the schedule names a rank that does not exist or
// is `rank` itself, or parts that do not exist; or it transposes parts of different sizes. Pure.
// `over_network`, by rank: whether it is reached over the network; need not be the same on all
// ranks.
absl::StatusOr<MessagePlan> PlanMessages(const CollectiveSchedule& schedule, uint32_t rank,
                                         uint32_t world, uint64_t elements, uint64_t chunk_elements,
                                         const std::vector<bool>& over_network);

}  // namespace tug

#endif  // TUG_COLLECTIVE_MESSAGE_PLAN_H_
