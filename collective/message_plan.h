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
//   4. Over a network messages also wait for their ports: see port_order.h.
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
#include "collective/planned_message.h"
#include "collective/port_order.h"
#include "collective/schedule.h"

namespace tug {

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

  // Words of port_order.h that this rank says, how many receives must be done before, and by
  // receive the words that wait for it.
  std::vector<PortWord> said;
  std::vector<uint32_t> said_waits;
  NumberLists said_after;
  // Those that it awaits, and by word the sends that wait for it; counted in send_waits.
  std::vector<PortWord> awaited;
  NumberLists sends_after_words;
};

inline constexpr uint64_t kNoWords = ~uint64_t{0};

struct MessageSizes {
  uint64_t chunk_elements = 0;  // of a message, at most; not 0
  // Least that words of port_order.h are about, where a schedule takes turns.
  uint64_t word_elements = kNoWords;
};

// INVALID_ARGUMENT: the schedule names a rank that does not exist or
// is `rank` itself, or parts that do not exist; or it transposes parts of different sizes. Pure.
// `over_network`, by rank: whether it is reached over the network; the same on both ends.
absl::StatusOr<MessagePlan> PlanMessages(const CollectiveSchedule& schedule, uint32_t rank,
                                         uint32_t world, uint64_t elements, MessageSizes sizes,
                                         const std::vector<bool>& over_network);

}  // namespace tug

#endif  // TUG_COLLECTIVE_MESSAGE_PLAN_H_
