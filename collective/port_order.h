#ifndef TUG_COLLECTIVE_PORT_ORDER_H_
#define TUG_COLLECTIVE_PORT_ORDER_H_

// What messages over a network wait for besides what they carry, so that a port has one message at
// a time, as cost.h has it. Else two messages share it, and what is needed first comes as late as
// what is needed last; who is late so is late for the next one, until all are. Halving-doubling of
// 8 then takes 1.6 to 2.0 times its time.
//
//   1. What a step sends waits for the last receive of the steps before from each rank. A step that
//      sends to the same ranks as the step before (trees in parts) waits for those but one step
//      before: what it receives meanwhile covers the way there and back. In a ring, where a rank
//      sends to one and receives from another, there is nothing to wait for, and chunks of several
//      steps are on their way.
//   2. Who sends much to a rank that it did not send to in the step before waits for its word that
//      it has received what steps before have for it (clear to send): it may be late.
//   3. Who has sent much to a rank that it does not send to in the next step waits, before it sends
//      on, for its word that it has received it: until then its own port is not free.
// 2 and 3 where a schedule takes turns (schedule.h). A word costs the time of its way, which is
// behind what its rank sends to others: trees in parts take up to 1.4 of their time with words, and
// gain nothing by them. Words are said unasked: both ends know from the schedule that they are.
// They are said before what the same receives let be sent, so they are not behind it on their way.
// Ranks on the same host have no ports, and two ranks alone share none. Nobody waits for ever: what
// is waited for is of earlier steps, and words of a step wait for receives of earlier steps, or of
// the one that they are about, only.

#include <cstdint>
#include <utility>
#include <vector>

#include "collective/planned_message.h"
#include "collective/schedule.h"

namespace tug {

// About the messages of one step between two ranks, of which `number` is the first.
struct PortWord {
  uint32_t peer = 0;
  uint32_t number = 0;
  // That they have been received; else that they may be sent.
  bool received = false;

  friend bool operator==(const PortWord&, const PortWord&) = default;
};

// Of one rank. Pairs are indices: what is waited for, what waits.
struct PortOrder {
  using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;
  Pairs sends_after_receives;
  std::vector<PortWord> said;
  Pairs said_after_receives;
  std::vector<PortWord> awaited;
  Pairs sends_after_words;
};

// `sends` and `receives` as MessagePlan has them. Words are about at least `word_elements`.
// `over_network`, by rank: whether it is reached over the network; the same on both ends. Pure.
PortOrder OrderPorts(uint32_t steps, const std::vector<PlannedMessage>& sends,
                     const std::vector<PlannedMessage>& receives,
                     const std::vector<bool>& over_network, uint64_t word_elements);

}  // namespace tug

#endif  // TUG_COLLECTIVE_PORT_ORDER_H_
