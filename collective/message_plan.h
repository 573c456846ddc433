// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_MESSAGE_PLAN_H_
#define TUG_COLLECTIVE_MESSAGE_PLAN_H_

// A schedule applied to a buffer of a given size: its messages, and what each one waits for.
//
//   1. Every part is cut into cells of at most `chunk_elements`, counted from the part's start.
//   2. A transfer is cut into messages: consecutive cells, as many as fit in `chunk_elements`.
//      Cells belong to parts, so both ends of a transfer cut alike, and messages of several steps
//      overlap in whole cells.
//   3. Cell by cell, in order of steps (within a step, sends before receives): a message is sent
//      after the receive that last wrote the cell; a receive writes the cell after the receive that
//      last wrote it, and after all sends of the cell since then have been read.
//   4. Over a network, messages also wait for their ports: see port_order.h.
//   5. A transfer whose parts are all empty is no message: on an empty buffer a schedule does
//      nothing and waits for no rank.
// Messages from one rank to another are numbered in order of (step, transfer, first element); the
// number identifies them on the wire.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "collective/planned_message.h"
#include "collective/port_order.h"
#include "collective/schedules/schedule.h"

namespace tug {

// Lists of numbers, stored one after another.
class NumberLists {
 public:
  std::span<const uint32_t> operator[](uint32_t list) const {
    return std::span(numbers_).subspan(begins_[list], begins_[list + 1] - begins_[list]);
  }
  // Builds the lists from (list, number) pairs; pairs keep their order within a list.
  static NumberLists From(uint32_t lists, std::span<const std::pair<uint32_t, uint32_t>> pairs);

 private:
  std::vector<uint32_t> begins_;
  std::vector<uint32_t> numbers_;
};

// Plan of one rank. Constant once made; messages are named by their index in `sends` or `receives`.
struct MessagePlan {
  CollectiveSchedule schedule;
  uint64_t elements = 0;
  uint64_t chunk_elements = 0;

  std::vector<PlannedMessage> sends;     // in step order
  std::vector<PlannedMessage> receives;  // in step order
  // By peer: indices of its messages in `sends` and `receives`, in order of their numbers.
  NumberLists sends_to;
  NumberLists receives_from;

  // Number of receives (sends) that must be done (read) first; one may count several times.
  std::vector<uint32_t> send_waits;           // by send: receives
  std::vector<uint32_t> receive_waits;        // by receive: receives
  std::vector<uint32_t> receive_waits_reads;  // by receive: reads of sends
  // The reverse: which messages wait for a given one.
  NumberLists sends_after;           // by receive: sends
  NumberLists receives_after;        // by receive: receives
  NumberLists receives_after_reads;  // by send: receives

  // Port words (port_order.h) that this rank sends; the number of receives that must be done first;
  // and, by receive, the words that wait for it.
  std::vector<PortWord> said;
  std::vector<uint32_t> said_waits;
  NumberLists said_after;
  // Port words that this rank awaits and, by word, the sends that wait for it; counted in
  // send_waits.
  std::vector<PortWord> awaited;
  NumberLists sends_after_words;
};

inline constexpr uint64_t kNoWords = ~uint64_t{0};

struct MessageSizes {
  uint64_t chunk_elements = 0;  // limit of a message; not 0
  // If the schedule takes turns: minimum size of the messages a port word is about (port_order.h).
  uint64_t word_elements = kNoWords;
};

// INVALID_ARGUMENT: the schedule names a rank that does not exist or is `rank` itself, or parts
// that do not exist, or no parts. Pure. `over_network`, by rank: whether the rank is reached over
// the network; the same on both ends.
absl::StatusOr<MessagePlan> PlanMessages(const CollectiveSchedule& schedule, uint32_t rank,
                                         uint32_t world, uint64_t elements, MessageSizes sizes,
                                         const std::vector<bool>& over_network);

}  // namespace tug

#endif  // TUG_COLLECTIVE_MESSAGE_PLAN_H_
