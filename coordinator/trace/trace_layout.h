// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_TRACE_TRACE_LAYOUT_H_
#define TUG_COORDINATOR_TRACE_TRACE_LAYOUT_H_

// Layout of a trace's spans in a picture of tracks: spans of a track are nested or disjoint.
//
// Work (compute, encode, sum, ...) is in the track that recorded it. Overlapping kinds are in
// further rows of their node, each span in the first free row:
//   queue  a block of a virtual worker, from queueing its first partition to sending its last one
//   push   a partition, from sending to the acknowledgement
//   pull   a partition, from when its lane began to answer (before, the pull waited for a version
//          that did not exist yet) to its arrival
// Arrows lead from a worker's push of a partition, via the sum and the optimizer that it went into,
// to the same worker's pull of the result.

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/progress/trace_collector.h"

namespace tug {

struct DrawnTrack {
  uint32_t node_id = 0;
  uint32_t row = 0;  // rows of a node are in this order
  std::string name;
};

struct DrawnSpan {
  uint32_t node_id = 0;
  uint32_t row = 0;
  TraceEvent event;         // a pull's begin is where it is drawn
  uint32_t partitions = 1;  // queue spans: number of partitions
  int64_t waited_ns = 0;    // pulls: from the request to the drawn begin
};

struct ArrowPoint {
  enum class Place { kStart, kStep, kEnd };
  Place place = Place::kStart;
  uint64_t arrow = 0;  // common to all points of an arrow, which are consecutive
  uint32_t node_id = 0;
  uint32_t row = 0;
  int64_t at_ns = 0;  // inside the span that it touches; not before the previous point
};

struct TraceLayout {
  std::vector<DrawnTrack> tracks;
  std::vector<DrawnSpan> spans;  // by node and row, then begin; the longer of two first
  std::vector<ArrowPoint> arrows;
  uint64_t left_out = 0;  // spans without a free row
};

// Max rows per kind (queue, push, pull) of a node; further spans are left out.
inline constexpr uint32_t kMaxTraceRows = 64;

// Pure.
TraceLayout LayOut(const JobTrace& trace);

}  // namespace tug

#endif  // TUG_COORDINATOR_TRACE_TRACE_LAYOUT_H_
