#ifndef TUG_SERVER_SHARD_CONTEXT_H_
#define TUG_SERVER_SHARD_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/lease.h"
#include "base/trace.h"
#include "exchange/segment_table.h"
#include "proto/wire.h"
#include "server/live_set.h"
#include "server/open_pushes.h"
#include "server/order_log.h"
#include "server/shard_counters.h"
#include "server/shard_options.h"
#include "server/sync_policy.h"
#include "transport/transport.h"

namespace tug {

// State of one segment at a version, readable during the call only, but for `weights`, which stays
// as it is while the lease lives.
struct SegmentSnapshot {
  uint32_t segment = 0;
  uint64_t version = 0;  // of the job: its step
  Lease weights;
  std::span<const float> m;  // empty where the optimizer keeps none; v too
  std::span<const float> v;
  // Where every push is an update: the segment's version, then by virtual worker the clock of the
  // next push that it lacks. Otherwise empty.
  std::span<const uint64_t> clocks;
};

// A line for people, each key once ("nonfinite/12").
struct ShardNotice {
  std::string key;
  std::string text;
};

struct ShardSinks {
  std::function<void(Outgoing)> send;
  std::function<void(const SegmentSnapshot&)> snapshot;
  std::function<void(ShardNotice)> notice;
  // Whether what is sent to this worker moves no bytes (Transport::SharesMemoryWith); none: never.
  std::function<bool(PeerId)> shares_memory = {};
  // With sync.record ORDER: an update has been made.
  std::function<void(const OrderRecord&)> record = {};
  // With a reduction: LaneReduction is to Work. On any thread.
  std::function<void()> wake = {};
};

// What the parts of a shard have in common: which lane of which job they belong to, the view, the
// message in hand, what is counted, and how they send. No part of it is about one segment's state.
// Not thread-safe: owned by one lane.
struct ShardContext {
  // REQUIRES: `table` outlives it.
  ShardContext(ShardOptions options, const SegmentTable& table, ShardSinks sinks);
  ShardContext(const ShardContext&) = delete;
  ShardContext& operator=(const ShardContext&) = delete;

  // What a shard of the placement before was told and has counted.
  void TakeFrom(const ShardContext& before) {
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
  absl::Time now = absl::InfinitePast();  // of the message or tick in hand
  ShardCounters counters;
  // From the coordinator: the version at which the job ends; 0: not known. Where virtual workers
  // have clocks of their own, by virtual worker: pushes with clock < this come and no others;
  // empty: not known.
  uint64_t final_version = 0;
  std::vector<uint64_t> final_clocks;

  // Answers.
  WireHeader Header(MessageKind kind) const;
  WireHeader SegmentHeader(MessageKind kind, uint32_t segment) const;
  void Reply(MessageKind kind, const WireHeader& to, uint64_t version) const;
  void ReplyToPush(MessageKind kind, const PushKey& key) const;
  void SayCommitted(const PushKey& key, uint64_t version) const;
  // Counts a message that makes no sense here; the first one is told to people.
  void Malformed(const WireHeader& header, const char* why);

  // Of the range of segments that a header names. Others than RangeExists: REQUIRES it.
  bool RangeExists(const WireHeader& header) const;
  uint32_t FirstId(const WireHeader& header) const {
    return table.id(header.block, header.first_segment);
  }
  uint64_t RangeElements(const WireHeader& header) const;
  // Bounds the pushes, and the waiting pulls, of a block that a lane remembers: a partition has at
  // least one segment; twice, for a virtual worker that moves to another worker.
  size_t MostOpen(uint32_t block) const {
    return size_t{2} * options.virtual_workers * table.segments_in_block(block);
  }

  // What a push or pull is in a trace.
  TraceEvent EventOf(TraceKind kind, const WireHeader& header) const;
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_CONTEXT_H_
