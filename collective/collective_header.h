// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_COLLECTIVE_HEADER_H_
#define TUG_COLLECTIVE_COLLECTIVE_HEADER_H_

// Contents of messages between ranks. They travel in the wire header (proto/wire.h, kinds
// kElements, kInCollective, kRankFailed and kClearToSend), in fields named for the exchange of
// gradients. Only this file knows which field holds what (docs/wire_format.md).

#include <cstdint>
#include <string>

#include "collective/element_type.h"
#include "proto/wire.h"

namespace tug {

// Shape of a collective as one rank sees it. Must be equal on all its ranks.
struct CollectiveShape {
  uint64_t elements = 0;  // of the whole buffer
  uint32_t type = 0;      // ElementType; any value if received
  uint32_t parts = 0;     // of its schedule
  uint32_t steps = 0;     // of its schedule

  friend bool operator==(const CollectiveShape&, const CollectiveShape&) = default;
};

// "4096 FP32 elements in 2 parts and 2 steps"
std::string CollectiveText(const CollectiveShape& shape);

// Fields of every message of a collective: all kinds except kRankFailed.
struct CollectiveHeader {
  uint64_t number = 0;  // of the collective, in the order in which all ranks start them
  CollectiveShape shape;
  bool over_network = false;   // how the sender reaches the receiver; both must agree
  uint32_t message = 0;        // kElements, kClearToSend: index of the message among those of this
                               // collective from its sender to this rank
  uint64_t first_element = 0;  // kElements
  bool received = false;  // kClearToSend: true: messages were received; false: they may be sent
};

// Number in the greeting (kInCollective) that a rank sends before the first collective.
inline constexpr uint64_t kNoCollective = ~uint64_t{0};

// Collective number alone, read before the other fields.
inline uint64_t CollectiveOf(const WireHeader& header) { return header.clock; }

void WriteCollectiveHeader(const CollectiveHeader& from, WireHeader& to);
CollectiveHeader ReadCollectiveHeader(const WireHeader& header);

// kRankFailed: the failed rank, and an absl::StatusCode as a number.
struct RankFailure {
  uint32_t rank = 0;
  uint32_t code = 0;
};

void WriteRankFailure(const RankFailure& from, WireHeader& to);
RankFailure ReadRankFailure(const WireHeader& header);

}  // namespace tug

#endif  // TUG_COLLECTIVE_COLLECTIVE_HEADER_H_
