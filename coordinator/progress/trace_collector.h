// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PROGRESS_TRACE_COLLECTOR_H_
#define TUG_COORDINATOR_PROGRESS_TRACE_COLLECTOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/trace.h"
#include "proto/control.pb.h"

namespace tug {

struct TracedTrack {
  std::string name;
  uint64_t dropped = 0;            // events lost because the buffer was full
  std::vector<TraceEvent> events;  // in the coordinator's clock
};

struct TracedNode {
  uint32_t node_id = 0;
  NodeKind kind = NODE_KIND_UNKNOWN;
  std::string name;             // "server-1"
  std::string place;            // "host, pid 123"
  uint64_t clock_error_ns = 0;  // bound on the error of its times against the coordinator's clock
  std::vector<TracedTrack> tracks;
};

// Recorded work of a job's processes during some steps.
struct JobTrace {
  TraceRange range;  // requested range; the recording may begin one step earlier
  std::vector<std::string> block_names;
  std::vector<TracedNode> nodes;    // by id
  std::vector<std::string> silent;  // names and places of nodes whose trace is incomplete
};

// Assembles the traces that nodes send in chunks. Not thread-safe.
class TraceCollector {
 public:
  // Limit over all nodes: 60 MB of memory here, and several times that while the trace is laid out
  // and written.
  static constexpr size_t kMaxEvents = size_t{1} << 20;
  static constexpr uint32_t kMaxTracks = 1024;  // per node
  static constexpr size_t kMaxTrackName = 64;   // bytes

  // Ignores repeats. Errors: RESOURCE_EXHAUSTED (kMaxEvents), INVALID_ARGUMENT (not the next chunk
  // of the node, or its track name is too long).
  absl::Status Add(const TraceChunk& chunk);
  // By node id. Only tracks, events and clock errors are set.
  std::map<uint32_t, TracedNode> Take();

 private:
  struct Sender {
    uint32_t next = 0;  // next expected sequence number
    TracedNode node;
  };
  std::map<uint32_t, Sender> senders_;
  size_t events_ = 0;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_TRACE_COLLECTOR_H_
