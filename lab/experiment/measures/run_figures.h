// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_MEASURES_RUN_FIGURES_H_
#define TUG_LAB_EXPERIMENT_MEASURES_RUN_FIGURES_H_

// Course of a completed job, from its metrics.jsonl: waits, staleness, traffic, and losses over
// time.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

// A job step. Losses that are not finite are NaN.
struct StepPoint {
  uint64_t step = 0;   // completed step of the job; 1-based
  double seconds = 0;  // since the job's first step began
  double loss = 0;
  double step_seconds = 0;  // StepMetrics::seconds
  double mean_seconds = 0;  // mean over the workers, which take turns at being slow
  double wait_seconds = 0;  // waiting for weights, mean over the workers
  double overlap = 0;  // part of the exchange hidden behind computing, of the worker that hid least
  uint64_t pushed_bytes = 0;  // payloads of all workers
  uint64_t pulled_bytes = 0;
  uint64_t tokens = 0;
};

struct EvalPoint {
  uint64_t step = 0;
  double seconds = 0;
  double loss = 0;
  bool final = false;  // over the whole validation split
};

// Totals over the steps of a virtual worker.
struct WorkerTimes {
  uint32_t virtual_worker = 0;
  uint64_t steps = 0;
  uint64_t skipped = 0;         // of these, skipped because the others were ahead
  double seconds = 0;           // of all steps
  double compute_seconds = 0;   // forward and backward
  double wait_seconds = 0;      // for weights
  double straggle_seconds = 0;  // delay added by the job's `straggler`
};

// Memory of a node for training: the peak of each kind (NodeCounters).
struct NodeHeldBytes {
  uint64_t weights = 0;    // all copies of them
  uint64_t gradients = 0;  // of workers
  uint64_t optimizer = 0;  // state, of servers
  uint64_t sums = 0;       // of servers
  uint64_t cached = 0;     // weights that servers cache for workers on their host
  uint64_t predicted = 0;  // by formula: model/transformer/memory.h, server/segments/memory.h

  uint64_t total() const { return weights + gradients + optimizer + sums + cached; }
};

// A node that was in the job at its end.
struct NodeFigures {
  std::string name;     // "server-1"
  bool server = false;  // else a worker
  NodeHeldBytes held;
};

// Traffic of a testbed host's link over the whole job, as its network interface counts: includes
// all headers, retransmissions and heartbeats.
struct LinkTraffic {
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};

// Schedule that comm.scheduler AUTO settled on and kept.
struct SettledSchedule {
  uint64_t step = 0;  // at which it settled
  uint64_t partition_bytes = 0;
  uint64_t credit_bytes = 0;
};

struct RunFigures {
  std::vector<StepPoint> steps;  // in order
  std::vector<EvalPoint> evals;  // in order
  std::vector<WorkerTimes> workers;
  std::vector<NodeFigures> nodes;  // by name
  uint64_t updates = 0;            // segment updates
  // Number of updates with staleness 0, 1, 2, ...; the last entry counts all larger ones too.
  std::vector<uint64_t> staleness;
  uint64_t dropped_pushes = 0;
  // Over the whole job, message headers included: 0 through shared memory.
  uint64_t worker_socket_bytes = 0;
  uint64_t server_socket_bytes = 0;
  // Sum over all workers; sum over all lanes. 0: not measured.
  double encode_seconds = 0;
  double decode_seconds = 0;
  std::optional<SettledSchedule> settled;
};

// Errors: NOT_FOUND; ABORTED: the job did not end in order, or completed no step.
absl::StatusOr<RunFigures> ReadRunFigures(const std::string& metrics_path);

// Steps after the first `warm_up`; all steps if none is left.
std::vector<StepPoint> StepsAfter(const RunFigures& figures, uint64_t warm_up);

// Loss of the last evaluation; none: no evaluation.
std::optional<double> FinalLoss(const RunFigures& figures);

// Mean staleness of the updates; 0 without any.
double MeanStaleness(const RunFigures& figures);
// Largest staleness of an update.
uint64_t MostStaleness(const RunFigures& figures);

// Job steps per second from the completion of step `after` to the end; from the first step if fewer
// than two points are left. Leaves out the last step: it waits for the slowest worker, while the
// others have ended. If all steps were reported at once, their number over their total time. 0: no
// steps.
double StepRate(const RunFigures& figures, uint64_t after);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_MEASURES_RUN_FIGURES_H_
