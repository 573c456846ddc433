// SPDX-License-Identifier: Apache-2.0
#include "exchange/uncommitted_pushes.h"

#include "base/check.h"

namespace tug {

TraceEvent OpenPush::EventOf(TraceKind kind, uint32_t partition) const {
  const Partition& part = PartOf(partition);
  const PartitionPush& state = partitions[partition];
  return {.kind = kind,
          .block = part.block,
          .first_segment = part.first_segment,
          .segment_count = part.segment_count,
          .virtual_worker = request.virtual_worker,
          .peer = part.lane,
          .clock = request.clock,
          .bytes = state.frames.size_bytes() > 0 ? state.frames.size_bytes() : state.bytes};
}

uint32_t UncommittedPushes::Open(PushRequest request) {
  TUG_CHECK_LT(request.virtual_worker, kMaxVirtualWorkers);
  ForEachOf(request.block, request.virtual_worker, [&](const OpenPush& other) {
    TUG_CHECK(other.request.clock != request.clock) << "pushed twice";
  });
  std::vector<uint32_t>& heads = heads_[request.block];
  if (request.virtual_worker >= heads.size()) heads.resize(request.virtual_worker + 1, kNone);
  if (free_places_.empty()) {
    free_places_.push_back(static_cast<uint32_t>(places_.size()));
    places_.push_back(std::make_unique<OpenPush>());
  }
  const uint32_t place = free_places_.back();
  free_places_.pop_back();
  OpenPush& push = *places_[place];
  push.dropped = push.lost = false;
  push.next = std::exchange(heads[request.virtual_worker], place);
  push.request = std::move(request);
  ++open_;
  return place;
}

void UncommittedPushes::Close(uint32_t place) {
  OpenPush& push = *places_[place];
  uint32_t* link = &heads_[push.request.block][push.request.virtual_worker];
  while (*link != place) link = &places_[*link]->next;
  *link = push.next;
  --open_;
  push.request.gradient = Lease();
  push.request.frames = {};
  push.encoded.segments.clear();
  push.partitions.clear();
  push.plan.reset();
  free_places_.push_back(place);
}

std::optional<UncommittedPushes::Found> UncommittedPushes::Find(const WireHeader& header) const {
  if (header.block >= heads_.size()) return std::nullopt;
  uint32_t place = HeadOf(header.block, header.virtual_worker);
  while (place != kNone && places_[place]->request.clock != header.clock) {
    place = places_[place]->next;
  }
  if (place == kNone) return std::nullopt;
  const std::optional<uint32_t> partition = places_[place]->plan->Find(header);
  if (!partition.has_value()) return std::nullopt;
  return Found{place, *partition};
}

// The least advanced state of the block's partitions.
Awaited UncommittedPushes::AwaitedOf(uint32_t block) const {
  Awaited furthest = Awaited::kNothing;
  const auto see = [&](Awaited awaited) {
    // Smaller values are less advanced.
    if (furthest == Awaited::kNothing || awaited < furthest) furthest = awaited;
  };
  for (uint32_t virtual_worker = 0; virtual_worker < heads_[block].size(); ++virtual_worker) {
    ForEachOf(block, virtual_worker, [&](const OpenPush& push) {
      for (const PartitionPush& part : push.partitions) {
        using State = PartitionPush::State;
        if (part.state == State::kCommitted) continue;
        see(part.state == State::kReceived ? Awaited::kSum
            : part.state == State::kSent   ? Awaited::kWire
                                           : Awaited::kQueue);
      }
    });
  }
  return furthest;
}

}  // namespace tug
