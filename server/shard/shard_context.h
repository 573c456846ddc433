// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_SHARD_CONTEXT_H_
#define TUG_SERVER_SHARD_SHARD_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/memory/lease.h"
#include "base/trace.h"
#include "blocks/segment_table.h"
#include "proto/wire.h"
#include "server/pushes/open_pushes.h"
#include "server/shard/shard_counters.h"
#include "server/shard/shard_options.h"
#include "server/sync/live_set.h"
#include "server/sync/order_log.h"
#include "server/sync/sync_policy.h"
#include "transport/transport.h"

namespace tug {

// State of one segment. Valid during the call only, except `weights`, which is unchanged while the
// lease lives.
struct SegmentSnapshot {
  uint32_t segment = 0;
  uint64_t version = 0;  // step of the job
  Lease weights;
  std::span<const float> m;  // m and v are empty if the optimizer keeps none
  std::span<const float> v;
  // SSP, ASP: the segment's version, then the next clock by virtual worker. Otherwise empty.
  std::span<const uint64_t> clocks;
};

// User-facing notice. Each key ("nonfinite/12") is shown once.
struct ShardNotice {
  std::string key;
  std::string text;
};

struct ShardSinks {
  std::function<void(Outgoing)> send;
  std::function<void(const SegmentSnapshot&)> snapshot;
  std::function<void(ShardNotice)> notice;
  // Whether this worker reads the lane's memory (Transport::SharesMemoryWith). Null: never.
  std::function<bool(PeerId)> shares_memory = {};
  // With sync.record ORDER: called after each update.
  std::function<void(const OrderRecord&)> record = {};
  // With a reduction: requests a call of LaneReduction::Work. Called on any thread.
  std::function<void()> wake = {};
};

// State shared by the parts of a shard: its lane and job, the view, the time, counters, and the
// means to send. It holds no state of segments. Not thread-safe: owned by one lane.
struct ShardContext {
  // REQUIRES: `table` outlives it.
  ShardContext(ShardOptions options, const SegmentTable& table, ShardSinks sinks);
  ShardContext(const ShardContext&) = delete;
  ShardContext& operator=(const ShardContext&) = delete;

  // Inherits the orders and counters of the previous placement's shard.
  void InheritFrom(const ShardContext& before) {
    live = before.live;
    counters = before.counters;
    final_version = before.final_version;
    final_clocks = before.final_clocks;
  }

  const ShardOptions options;
  const SegmentTable& table;
  const ShardSinks sinks;
  const std::unique_ptr<const SyncPolicy> policy;
  uint32_t view;
  LiveSet live;
  absl::Time now = absl::InfinitePast();  // of the current message or tick
  ShardCounters counters;
  // From the coordinator. final_version: final version of the job; 0: unknown. final_clocks (SSP,
  // ASP): by virtual worker, the end of its clocks; empty: unknown.
  uint64_t final_version = 0;
  std::vector<uint64_t> final_clocks;

  WireHeader Header(MessageKind kind) const;
  WireHeader SegmentHeader(MessageKind kind, uint32_t segment) const;
  void Reply(MessageKind kind, const WireHeader& to, uint64_t version) const;
  void ReplyToPush(MessageKind kind, const PushKey& key) const;
  void SendCommitted(const PushKey& key, uint64_t version) const;
  // Counts an invalid message; the first one is reported to the user.
  void Malformed(const WireHeader& header, const char* why);

  // Segments that a header names. REQUIRES, except RangeExists: the range exists.
  bool RangeExists(const WireHeader& header) const;
  uint32_t FirstId(const WireHeader& header) const {
    return table.id(header.block, header.first_segment);
  }
  uint64_t RangeElements(const WireHeader& header) const;
  // Bound on the pushes, and on the waiting pulls, that a lane tracks per block: a partition has at
  // least one segment. Twice that, for a virtual worker that moves to another worker.
  size_t MostOpen(uint32_t block) const {
    return size_t{2} * options.virtual_workers * table.segments_in_block(block);
  }

  // Trace event of a push or pull.
  TraceEvent EventOf(TraceKind kind, const WireHeader& header) const;
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_SHARD_CONTEXT_H_
