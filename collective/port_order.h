// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_PORT_ORDER_H_
#define TUG_COLLECTIVE_PORT_ORDER_H_

// Extra waits of messages over a network, so that a port handles one message at a time, as cost.h
// assumes. Otherwise two messages share the port, and the one needed first arrives as late as the
// one needed last; a rank that is late this way is late for the next one, until all are.
// Halving-doubling of 8 ranks then takes 1.6 to 2.0 times its time.
//
//   1. A step's sends wait for the last receive from each rank in the steps before. If a step sends
//      to the same ranks as the step before (trees in parts), they wait only for receives at least
//      two steps before: those of the step between cover the round trip. In a ring, where a rank
//      sends to one rank and receives from another, sends need not wait, and chunks of several
//      steps are in flight.
//   2. Before a rank sends much to a rank that it did not send to in the step before, it waits for
//      that rank's word that it has received all messages of earlier steps (clear to send): it may
//      be late.
//   3. After a rank has sent much to a rank that it does not send to in the next step, it waits
//      before its next sends for that rank's word that it has received the messages: until then its
//      own port is busy.
// 2 and 3 apply if a schedule takes turns (schedule.h). A word costs its latency, and queues behind
// its rank's sends to others: with words, trees in parts take up to 1.4 times as long and gain
// nothing. Words are not requested: both ends derive them from the schedule. They are sent before
// the messages that the same receives enable, so that they do not queue behind those. Ranks on the
// same host have no ports, and a group of two ranks shares none. There is no deadlock: messages
// wait only for earlier steps, and words of a step wait only for receives of earlier steps or of
// the step that they are about.

#include <cstdint>
#include <utility>
#include <vector>

#include "collective/planned_message.h"
#include "collective/schedules/schedule.h"

namespace tug {

// A word (control message) about the messages of one step between two ranks, the first of which is
// `number`.
struct PortWord {
  uint32_t peer = 0;
  uint32_t number = 0;
  // True: they were received; false: they may be sent.
  bool received = false;

  friend bool operator==(const PortWord&, const PortWord&) = default;
};

// Port order of one rank. Pairs are indices: (awaited, waiting).
struct PortOrder {
  using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;
  Pairs sends_after_receives;
  std::vector<PortWord> said;
  Pairs said_after_receives;
  std::vector<PortWord> awaited;
  Pairs sends_after_words;
};

// `sends` and `receives`: as in MessagePlan. Words are about at least `word_elements` elements.
// `over_network`, by rank: whether the rank is reached over the network; the same on both ends.
// Pure.
PortOrder OrderPorts(uint32_t steps, const std::vector<PlannedMessage>& sends,
                     const std::vector<PlannedMessage>& receives,
                     const std::vector<bool>& over_network, uint64_t word_elements);

}  // namespace tug

#endif  // TUG_COLLECTIVE_PORT_ORDER_H_
