// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_TRACE_TRACE_FIGURES_H_
#define TUG_COORDINATOR_TRACE_TRACE_FIGURES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "coordinator/progress/trace_collector.h"

namespace tug {

// Figures of one step of a worker, from its trace.
struct StepFigures {
  uint32_t node_id = 0;
  uint64_t clock = 0;
  double seconds = 0;                // includes evaluation
  double compute_seconds = 0;        // forward and backward passes
  double exposed_seconds = 0;        // compute thread waited for weights
  double communication_seconds = 0;  // part of the step with at least one push or pull open
  uint64_t pushed_bytes = 0;         // at this clock
  uint64_t pulled_bytes = 0;         // of the version that the step creates
  // By block: longest time that a partition waited for its turn and for credit. Blocks without
  // pushes are omitted.
  std::map<uint32_t, double> queue_seconds;

  // Fraction of communication hidden by computation: 1 - exposed / communication; 1 without any.
  double overlap() const;
};

// Whether a worker's track belongs to a device: it has passes but no steps. Steps are in the
// compute thread's track, which also has the passes, for as long as that thread was busy with them.
// Pure.
bool IsOfDevice(const TracedTrack& track);

// Figures by worker, then clock; of the steps in the range whose end was recorded. Pure.
std::vector<StepFigures> FiguresOf(const JobTrace& trace);

// Means over workers and steps, without node, clock and blocks. REQUIRES: not empty.
StepFigures MeanOf(const std::vector<StepFigures>& figures);

}  // namespace tug

#endif  // TUG_COORDINATOR_TRACE_TRACE_FIGURES_H_
