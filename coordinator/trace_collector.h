#ifndef TUG_COORDINATOR_TRACE_COLLECTOR_H_
#define TUG_COORDINATOR_TRACE_COLLECTOR_H_

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
  uint64_t dropped = 0;            // events that its buffer had no room for
  std::vector<TraceEvent> events;  // by the coordinator's clock
};

struct TracedNode {
  uint32_t node_id = 0;
  NodeKind kind = NODE_KIND_UNKNOWN;
  std::string name;             // "server 2 (host, pid 123)"
  uint64_t clock_error_ns = 0;  // of its times against the coordinator's, at most
  std::vector<TracedTrack> tracks;
};

// What the processes of a job did in some steps.
struct JobTrace {
  TraceRange range;  // asked for; what is recorded may begin one step before
  std::vector<std::string> block_names;
  std::vector<TracedNode> nodes;    // by id
  std::vector<std::string> silent;  // of those whose trace is not all here
};

// Puts together what nodes send, chunk by chunk. Not thread-safe.
class TraceCollector {
 public:
  // Of all nodes together: 60 MB of memory here, and several times that for a moment when they are
  // laid out and written.
  static constexpr size_t kMaxEvents = size_t{1} << 20;
  static constexpr uint32_t kMaxTracks = 1024;  // of a node
  static constexpr size_t kMaxTrackName = 64;   // bytes

  // Repeats change nothing. Errors: RESOURCE_EXHAUSTED (kMaxEvents), INVALID_ARGUMENT (a chunk that
  // no node sends next).
  absl::Status Add(const TraceChunk& chunk);
  // By node id; tracks and events, and the error of the clock, only.
  std::map<uint32_t, TracedNode> Take();

 private:
  struct Sender {
    uint32_t next = 0;  // sequence
    TracedNode node;
  };
  std::map<uint32_t, Sender> senders_;
  size_t events_ = 0;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_TRACE_COLLECTOR_H_
