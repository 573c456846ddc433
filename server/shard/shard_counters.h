// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_SHARD_COUNTERS_H_
#define TUG_SERVER_SHARD_SHARD_COUNTERS_H_

#include <cstdint>

#include "server/sync/staleness.h"

namespace tug {

// Counters of a lane, across its shards of a timeline.
struct ShardCounters {
  uint64_t refused = 0;    // other view or timeline
  uint64_t malformed = 0;  // valid on the wire, but not for this lane
  uint64_t repeats = 0;
  uint64_t deferred = 0;  // pushes not stored: no memory, or early
  // Peak bytes of unacknowledged weights sent to one worker: at most max(the lane's part of the
  // credit, a partition). An answer that was requested again counts once (answer_queue.h).
  uint64_t peak_answer_bytes = 0;
  // Counts each segment: one update of three segments is three.
  uint64_t updates = 0;
  StalenessHistogram staleness = {};  // of updates
  // kDropped answers: pushes too late for all their segments. Repeats count again.
  uint64_t dropped_pushes = 0;
  uint64_t inexact_records = 0;  // OrderRecord::kInexact
  double decode_seconds = 0;     // decoding and summing pushes
  // With ShardOptions::work_time: time making new weights, and answering pulls.
  double optimizer_seconds = 0;
  double serve_seconds = 0;
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_SHARD_COUNTERS_H_
