// What lanes have no memory for: announced, and offered again.
#include <algorithm>

#include "exchange/push_table.h"

namespace tug {

bool PushTable::IsShort(const OpenPush& push, uint32_t partition) const {
  if (short_until_.empty() || push.partitions[partition].state == State::kWanted) return false;
  const auto found = short_until_.find(PartOf(push, partition).lane);
  return found != short_until_.end() && push.request.clock < found->second;
}

void PushTable::NoteDeferred(const OpenPush& push, uint32_t partition) {
  ++counters_.deferred;
  if (!options_.update_per_push) {
    uint64_t& until = short_until_[PartOf(push, partition).lane];
    until = std::max(until, push.request.clock + 1 + kAnnouncedClocks);
  }
  if (options_.frees_gradients && sinks_.deferred) {
    sinks_.deferred({push.request.block, push.request.virtual_worker});
  }
}

void PushTable::Announce(OpenPush& push, uint32_t partition, absl::Time now) {
  push.partitions[partition].state = State::kAnnounced;
  SendHeader(MessageKind::kPush, push, partition, now);
}

void PushTable::OfferAgain(OpenPush& push, uint32_t partition, absl::Time now) {
  if (!options_.update_per_push) return Announce(push, partition, now);
  QueueAgain(push.partitions[partition]);
}

}  // namespace tug
