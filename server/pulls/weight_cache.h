// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_PULLS_WEIGHT_CACHE_H_
#define TUG_SERVER_PULLS_WEIGHT_CACHE_H_

// Cache of weights that lanes on other hosts own, for the workers on this lane's host
// (placement.host_weight_cache; ZeRO++, Wang et al. 2023, section 3.2: hpZ's secondary partition,
// here for a whole host and not only for the backward pass). A state machine without I/O: a shard
// passes it pulls and messages, and it sends through `Send`.
//
//   1. A worker sends its pull of a partition of such a lane to this lane (PullLanesOn,
//      view_lanes.h).
//   2. On a miss of (segments, codec, version), the cache asks the owner for exactly these: once
//      for all workers, and again without an answer. The shard lets the pulls wait.
//   3. The owner's answer is copied unchanged into memory shared with the workers, and its credit
//      is returned. The shard answers waiting and later pulls from there.
//   4. The answer replaces cached payloads of its segments that are as old or older, and requests
//      that are two or more versions older. Leases stay valid.
//
// Under BSP a version of a segment is the same for all, so the cached weights equal the owner's. A
// new view clears the cache: workers ask again for what they still need.
//
// Memory: one payload per segment, however often blocks are repartitioned; until the next version
// arrives, also one of the previous version if that arrived later. Cost per message: linear in the
// partitions of a block.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "base/memory/lease.h"
#include "base/memory/send_buffers.h"
#include "blocks/segment_table.h"
#include "proto/wire.h"
#include "transport/transport.h"

namespace tug {

// Size of one version of all cached weights, for any partition.
struct KeptBytes {
  uint64_t payloads = 0;
  uint64_t buffers = 0;  // upper bound on the buffers that hold them
};
// For the segments of `lanes`, as they are pulled. `lane_of_segment`: lane numbers. Pure.
KeptBytes KeptBytesOf(std::span<const uint32_t> lane_of_segment, std::span<const uint32_t> lanes,
                      Codec codec, const SegmentTable& table);

// Not thread-safe: owned by one lane.
class WeightCache {
 public:
  struct Options {
    uint64_t job = 0;
    uint32_t timeline = 0;
    uint32_t view = 0;
    std::vector<uint32_t> lane_of_segment;  // lane numbers, as in ShardOptions
    std::vector<uint32_t> lanes;            // lanes whose weights are cached
    Codec codec = Codec::kNone;             // codec of the job's pulls: FP32, bf16 or int8
    absl::Duration resend_first;            // if the owner is in another view
    absl::Duration resend_after;
    SendBuffers::NewBuffer new_buffer;  // see SendBuffers
  };
  using Send = std::function<void(Outgoing)>;

  // REQUIRES: `table` outlives it.
  WeightCache(Options options, const SegmentTable& table, Send send);

  // Whether the range belongs to one lane whose weights are cached here. REQUIRES: it exists.
  bool Keeps(uint32_t block, uint32_t first_segment, uint32_t segment_count) const;
  // Whether a pull of such a range can be answered from here, now or later.
  bool CanAnswer(const WireHeader& pull) const;

  // REQUIRES, for the three below: CanAnswer(pull).
  // Returns the weights if they are cached.
  std::optional<Lease> Find(const WireHeader& pull) const;
  // Asks the owner, unless the weights are cached or requested.
  void Ask(const WireHeader& pull, absl::Time now);
  // Whether the weights are cached or requested; no longer after a refusal, or once newer ones
  // arrive.
  bool Knows(const WireHeader& pull) const { return FindEntry(pull) != nullptr; }

  // kWeights of this view. True if they were requested: now they are cached.
  bool OnWeights(const Message& message);
  // kRefused of this view. If the owner has a later version, the request is dropped. Otherwise the
  // pull belonged to another view, and the owner is asked again soon.
  void OnRefused(const WireHeader& header, absl::Time now);
  // kWeights or kRefused of another view or timeline: returns the credit, or asks the owner again
  // soon.
  void OnFenced(const WireHeader& header, absl::Time now);
  void OnTick(absl::Time now);
  // Clears the cache.
  void SetView(uint32_t view);

  // Peak bytes of cached payloads.
  uint64_t peak_held_bytes() const { return peak_held_bytes_; }

 private:
  struct Entry {
    WireHeader pull;  // as sent to the owner
    Lease payload;
    bool held = false;  // the payload has arrived
    absl::Time due;     // if not held: when to ask the owner again
  };
  // Whether `header` is a pull, or an answer, for the same weights.
  static bool IsOf(const Entry& entry, const WireHeader& header);
  static bool Overlap(const WireHeader& a, const WireHeader& b);

  uint32_t Owner(const WireHeader& header) const {
    return options_.lane_of_segment[table_.id(header.block, header.first_segment)];
  }
  const Entry* FindEntry(const WireHeader& header) const;
  // The request that this answer of the owner completes; null: none.
  Entry* FindAsked(const WireHeader& answer);
  // Whether `refused` may refuse this request: same segments and codec, sent by the owner.
  bool IsAskedOf(const Entry& entry, const WireHeader& refused) const;
  void AskSoon(Entry& entry, absl::Time now) const;
  void ReportReceived(const WireHeader& weights);
  // Removes the entries that these weights replace.
  void MakeRoomFor(const WireHeader& weights);
  void Take(Entry& entry, const Lease& payload);
  void AskOwner(Entry& entry, absl::Time now);

  Options options_;
  const SegmentTable& table_;
  const Send send_;
  SendBuffers buffers_;
  std::vector<std::vector<Entry>> entries_;  // by block
  uint64_t held_bytes_ = 0;
  uint64_t peak_held_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_SERVER_PULLS_WEIGHT_CACHE_H_
