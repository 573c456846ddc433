// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_REPLICATION_QUEUED_PUSHES_H_
#define TUG_SERVER_REPLICATION_QUEUED_PUSHES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "server/pushes/push_payload.h"

namespace tug {

// Pushes that are updates (SSP, ASP), at a lane whose segments have replicas. A segment has one
// update in flight at a time; further pushes queue here in order of arrival. Each virtual worker
// has at most one push queued per segment: its next one is early until that one is applied. Not
// thread-safe: owned by one lane.
class QueuedPushes {
 public:
  struct Push {
    PushPayload payload;
    bool exact = true;   // it names the version of each of its segments
    uint32_t waits = 0;  // segments whose queue contains it
  };

  // `max_size_bytes`: limit on payloads in the lane's own memory; a single push may exceed it.
  QueuedPushes(uint32_t segments, uint64_t max_size_bytes)
      : at_segment_(segments), max_size_bytes_(max_size_bytes) {}

  bool HasRoom(uint64_t bytes) const {
    return held_bytes_ == 0 || held_bytes_ + bytes <= max_size_bytes_;
  }
  uint64_t held_bytes() const { return held_bytes_; }
  // The virtual worker's push that is queued or in flight at the segment; null: none.
  const Push* Find(uint32_t segment, uint32_t virtual_worker) const {
    for (const uint32_t index : at_segment_[segment]) {
      const Push& push = pushes_[index];
      if (push.payload.header().virtual_worker == virtual_worker) return &push;
    }
    return nullptr;
  }
  // Appends the push to the queues of these segments, at least one. `payload` gets a released one
  // in exchange.
  void Add(PushPayload& payload, bool exact, std::span<const uint32_t> segments) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(pushes_.size()));
      pushes_.emplace_back();
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    held_bytes_ += OwnBytes(payload);
    Push& push = pushes_[index];
    std::swap(push.payload, payload);
    push.exact = exact;
    push.waits = static_cast<uint32_t>(segments.size());
    for (const uint32_t segment : segments) at_segment_[segment].push_back(index);
  }

  bool empty(uint32_t segment) const { return at_segment_[segment].empty(); }
  const Push& Front(uint32_t segment) const { return pushes_[at_segment_[segment].front()]; }
  // Removes the first push, which has been applied to the segment. True if that was the last of its
  // segments: then its payload is released.
  bool Pop(uint32_t segment) {
    const uint32_t index = at_segment_[segment].front();
    at_segment_[segment].pop_front();
    if (--pushes_[index].waits > 0) return false;
    free_.push_back(index);
    held_bytes_ -= OwnBytes(pushes_[index].payload);
    pushes_[index].payload.Release();
    return true;
  }

 private:
  static uint64_t OwnBytes(const PushPayload& payload) {
    return payload.own() ? payload.size_bytes() : 0;
  }

  std::vector<Push> pushes_;
  std::vector<uint32_t> free_;
  std::vector<std::deque<uint32_t>> at_segment_;  // indices of pushes_
  const uint64_t max_size_bytes_;
  uint64_t held_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_SERVER_REPLICATION_QUEUED_PUSHES_H_
