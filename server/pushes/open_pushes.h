// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_PUSHES_OPEN_PUSHES_H_
#define TUG_SERVER_PUSHES_OPEN_PUSHES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "proto/wire.h"

namespace tug {

// A push as a lane identifies it: identity, partition, and the sender to answer.
struct PushKey {
  uint32_t sender = 0;
  uint32_t block = 0;
  uint32_t first_segment = 0;
  uint32_t segment_count = 0;
  uint32_t virtual_worker = 0;
  uint16_t virtual_worker_count = 0;
  uint64_t clock = 0;

  friend bool operator==(const PushKey&, const PushKey&) = default;
};
PushKey KeyOf(const WireHeader& header);
// Sets the segments, virtual workers and clock of an answer to that push.
void SetPush(const PushKey& key, WireHeader& header);

// Stored pushes with segments that have not closed. Listed by segment, all of its open clock, so a
// close touches only the pushes of its segment. Allocates only beyond the previous peak. Not
// thread-safe: owned by one lane.
class OpenPushes {
 public:
  OpenPushes(uint32_t segments, uint32_t blocks) : by_segment_(segments), in_block_(blocks) {}

  size_t in_block(uint32_t block) const { return in_block_[block]; }
  // Whether exactly this push is open. `segment`: one of its open segments.
  bool Contains(const PushKey& key, uint32_t segment) const;

  // `segments`: ids of its open segments, at least one.
  void Add(const PushKey& key, std::span<const uint32_t> segments);
  // Drops all pushes without an answer: their senders resend those they still need.
  void Clear();
  // Closes the segment: calls `committed(key)` for each push without an open segment left.
  template <typename F>
  void Close(uint32_t segment, F committed) {
    for (const uint32_t index : by_segment_[segment]) {
      Entry& entry = entries_[index];
      if (--entry.open_segments > 0) continue;
      committed(entry.key);
      --in_block_[entry.key.block];
      free_.push_back(index);
    }
    by_segment_[segment].clear();
  }

 private:
  struct Entry {
    PushKey key;
    uint32_t open_segments = 0;
  };

  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  std::vector<std::vector<uint32_t>> by_segment_;  // indices of entries_
  std::vector<size_t> in_block_;
};

}  // namespace tug

#endif  // TUG_SERVER_PUSHES_OPEN_PUSHES_H_
