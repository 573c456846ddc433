#ifndef TUG_COLLECTIVE_COLLECTIVE_HEADER_H_
#define TUG_COLLECTIVE_COLLECTIVE_HEADER_H_

// What messages between ranks say. They travel in the wire header (proto/wire.h, kinds kElements,
// kInCollective, kRankFailed and kClearToSend), in fields that are named for the exchange of
// gradients: this is the only place that knows which field carries what (docs/wire_format.md).

#include <cstdint>
#include <string>

#include "collective/element_type.h"
#include "proto/wire.h"

namespace tug {

// What a rank takes a collective to be. All of its ranks must say the same.
struct CollectiveShape {
  uint64_t elements = 0;  // of the whole buffer
  uint32_t type = 0;      // ElementType, or, from outside, anything
  uint32_t parts = 0;     // of its schedule
  uint32_t steps = 0;     // of its schedule

  friend bool operator==(const CollectiveShape&, const CollectiveShape&) = default;
};

// "4096 FP32 elements in 2 parts and 2 steps"
std::string CollectiveText(const CollectiveShape& shape);

// What a message that belongs to a collective says: every kind except kRankFailed.
struct CollectiveHeader {
  uint64_t number = 0;  // of the collective, in the order in which all ranks start them
  CollectiveShape shape;
  bool over_network = false;   // how the sender reaches the receiver; both must say the same
  uint32_t message = 0;        // kElements, kClearToSend: number of the message in the collective,
                               // among those of its sender to this rank
  uint64_t first_element = 0;  // kElements
  bool received = false;  // kClearToSend: the messages have been received; else they may be sent
};

// What a rank says before the first collective: that it is there (kInCollective).
inline constexpr uint64_t kNoCollective = ~uint64_t{0};

// The number alone, which is looked at first.
inline uint64_t CollectiveOf(const WireHeader& header) { return header.clock; }

void WriteCollectiveHeader(const CollectiveHeader& from, WireHeader& to);
CollectiveHeader ReadCollectiveHeader(const WireHeader& header);

// kRankFailed: which rank is at fault, and an absl::StatusCode as a number.
struct RankFailure {
  uint32_t rank = 0;
  uint32_t code = 0;
};

void WriteRankFailure(const RankFailure& from, WireHeader& to);
RankFailure ReadRankFailure(const WireHeader& header);

}  // namespace tug

#endif  // TUG_COLLECTIVE_COLLECTIVE_HEADER_H_
