#ifndef TUG_COORDINATOR_TRACE_LAYOUT_H_
#define TUG_COORDINATOR_TRACE_LAYOUT_H_

// Where the spans of a trace stand in a picture of tracks: spans of a track nest, or do not
// overlap.
//
// Work (compute, encode, sum, ...) stands in the track that recorded it. What is open side by side
// stands in further rows of its node, each span in the first row that is free:
//   queue  a block of a virtual worker, from its first partition's coming to its last one's leaving
//   push   a partition, from sending to the answer
//   pull   a partition, from its lane's beginning to answer (what passed before was waiting for a
//          version that was not made yet) to its arrival
// Arrows go from a worker's push of a partition over the sum and the optimizer that it went into to
// the same worker's pull of what came of it.

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/trace_collector.h"

namespace tug {

struct DrawnTrack {
  uint32_t node_id = 0;
  uint32_t row = 0;  // rows of a node stand in this order
  std::string name;
};

struct DrawnSpan {
  uint32_t node_id = 0;
  uint32_t row = 0;
  TraceEvent event;         // a pull's begins where it is drawn
  uint32_t partitions = 1;  // of a queue span
  int64_t waited_ns = 0;    // of a pull: from asking to where it begins
};

struct ArrowPoint {
  enum class Place { kStart, kStep, kEnd };
  Place place = Place::kStart;
  uint64_t arrow = 0;  // points of one have the same, and follow one another
  uint32_t node_id = 0;
  uint32_t row = 0;
  int64_t at_ns = 0;  // inside the span that it touches; never before the point before it
};

struct TraceLayout {
  std::vector<DrawnTrack> tracks;
  std::vector<DrawnSpan> spans;  // by node and row, then begin; the longer of two first
  std::vector<ArrowPoint> arrows;
  uint64_t left_out = 0;  // spans, for want of rows
};

// Rows of queue, push or pull of a node; what would need more is left out.
inline constexpr uint32_t kMaxTraceRows = 64;

// Pure.
TraceLayout LayOut(const JobTrace& trace);

}  // namespace tug

#endif  // TUG_COORDINATOR_TRACE_LAYOUT_H_
