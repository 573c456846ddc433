#include "exchange/awaited.h"

#include <algorithm>

#include "exchange/exchange.h"

namespace tug {

// What has furthest to go of it.
Awaited PushTable::AwaitedOf(uint32_t block) const {
  Awaited furthest = Awaited::kNothing;
  const auto see = [&](Awaited awaited) {
    // In this order a smaller one is further from its end.
    if (furthest == Awaited::kNothing || awaited < furthest) furthest = awaited;
  };
  for (const uint32_t head : heads_[block]) {
    for (uint32_t place = head; place != kNone; place = places_[place]->next) {
      for (const PartitionPush& part : places_[place]->partitions) {
        if (part.state == State::kCommitted) continue;
        see(part.state == State::kReceived ? Awaited::kSum
            : part.state == State::kSent   ? Awaited::kWire
                                           : Awaited::kQueue);
      }
    }
  }
  return furthest;
}

bool PullTable::HasNothingOf(uint32_t block) const {
  const OpenPull& pull = pulls_[block];
  return std::none_of(pull.partitions.begin(), pull.partitions.end(),
                      [](State state) { return state == State::kCopied || state == State::kHeld; });
}

// Where pushes are updates they are committed at once, and a pull waits at the lane for others.
Awaited Exchange::AwaitedOf(uint32_t block) const {
  const Awaited pushed = pushes_.AwaitedOf(block);
  if (pushed != Awaited::kNothing || !pulls_.IsOpen(block)) return pushed;
  return options_.update_per_push && pulls_.HasNothingOf(block) ? Awaited::kSum : Awaited::kWire;
}

}  // namespace tug
