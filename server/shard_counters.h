#ifndef TUG_SERVER_SHARD_COUNTERS_H_
#define TUG_SERVER_SHARD_COUNTERS_H_

#include <cstdint>

#include "server/staleness.h"

namespace tug {

// What a shard has done since it began.
struct ShardCounters {
  uint64_t refused = 0;    // old view or timeline
  uint64_t malformed = 0;  // passed the wire's checks but makes no sense here
  uint64_t repeats = 0;
  uint64_t deferred = 0;  // pushes not stored, for want of memory
  // Of weights sent to a worker and not known to be there, at a time: at most max(the lane's part
  // of the credit, a partition); what was asked for again counts once (answer_queue.h).
  uint64_t most_answer_bytes = 0;
  // Of segments: an update of each of three segments is three.
  uint64_t updates = 0;
  StalenessHistogram staleness = {};  // of updates
  // Answers kDropped: messages too late for all of their segments, each repeat once more.
  uint64_t dropped_pushes = 0;
  uint64_t inexact_records = 0;  // OrderRecord::kInexact
  double decode_seconds = 0;     // spent in decoding and summing pushes
  // With ShardOptions::work_time: spent in making new weights, and in answering pulls.
  double optimizer_seconds = 0;
  double serve_seconds = 0;
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_COUNTERS_H_
