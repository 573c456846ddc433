#ifndef TUG_COORDINATOR_TRACE_FIGURES_H_
#define TUG_COORDINATOR_TRACE_FIGURES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "coordinator/trace_collector.h"

namespace tug {

// One worker's step, from its trace.
struct StepFigures {
  uint32_t node_id = 0;
  uint64_t clock = 0;
  double seconds = 0;                // of the step, evaluation included
  double compute_seconds = 0;        // forward and backward passes
  double exposed_seconds = 0;        // compute waited for weights
  double communication_seconds = 0;  // part of the step with at least one push or pull open
  uint64_t pushed_bytes = 0;         // at this clock
  uint64_t pulled_bytes = 0;         // of the version that the step makes
  // By block: the longest that a partition of it waited for its turn and for credit. Blocks of
  // which nothing was pushed are left out.
  std::map<uint32_t, double> queue_seconds;

  // The part of communication that computing hid: 1 - exposed / communication; 1 without any.
  double overlap() const;
};

// Whether a worker's track is of a device: it has passes without steps. Steps are the compute
// thread's, which has the passes too, as long as it was at them. Pure.
bool IsOfDevice(const TracedTrack& track);

// By worker, then clock; steps of the range whose end was recorded. Pure.
std::vector<StepFigures> FiguresOf(const JobTrace& trace);

// Means over workers and steps; without node, clock and blocks. REQUIRES: not empty.
StepFigures MeanOf(const std::vector<StepFigures>& figures);

}  // namespace tug

#endif  // TUG_COORDINATOR_TRACE_FIGURES_H_
