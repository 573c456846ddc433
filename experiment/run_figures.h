#ifndef TUG_EXPERIMENT_RUN_FIGURES_H_
#define TUG_EXPERIMENT_RUN_FIGURES_H_

// What the metrics.jsonl of a job that has ended says of its course: who waited for how long, how
// stale its updates were, what was sent, and what it learned when.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

// Of the job. Losses that were not finite are NaN.
struct StepPoint {
  uint64_t step = 0;   // of the job, complete; 1-based
  double seconds = 0;  // since its first step began
  double loss = 0;
  double step_seconds = 0;    // that it took, as StepMetrics::seconds
  double mean_seconds = 0;    // the mean over the workers, which take turns at being slow
  double wait_seconds = 0;    // for weights, the mean over the workers
  double overlap = 0;         // part of the exchange behind computing, of the worker that hid least
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

// Sums over the steps of a virtual worker.
struct WorkerTimes {
  uint32_t virtual_worker = 0;
  uint64_t steps = 0;
  uint64_t skipped = 0;         // of them: the others were further
  double seconds = 0;           // of all steps
  double compute_seconds = 0;   // forward and backward
  double wait_seconds = 0;      // for weights
  double straggle_seconds = 0;  // as the job's `straggler` says
};

// What a node held for training, the most of each at a time (NodeCounters).
struct NodeHeldBytes {
  uint64_t weights = 0;    // all copies of them
  uint64_t gradients = 0;  // of workers
  uint64_t optimizer = 0;  // state, of servers
  uint64_t sums = 0;       // of servers
  uint64_t cached = 0;     // weights that servers keep for workers on their host
  uint64_t predicted = 0;  // all of them, by the formulas of model/memory.h and server/memory.h

  uint64_t total() const { return weights + gradients + optimizer + sums + cached; }
};

// A node that was there at the end.
struct NodeFigures {
  uint32_t node_id = 0;
  bool server = false;  // else a worker
  NodeHeldBytes held;
};

// Over the link of a host of a testbed in the whole job, as its network interface counts: all
// headers, what was sent again, and heartbeats are among them.
struct LinkTraffic {
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};

// What comm.scheduler AUTO settled on, and kept.
struct SettledSchedule {
  uint64_t step = 0;  // at which it did
  uint64_t partition_bytes = 0;
  uint64_t credit_bytes = 0;
};

struct RunFigures {
  std::vector<StepPoint> steps;  // in order
  std::vector<EvalPoint> evals;  // in order; the last one last
  std::vector<WorkerTimes> workers;
  std::vector<NodeFigures> nodes;  // by node_id
  uint64_t updates = 0;            // of segments
  // How many of them had staleness 0, 1, 2, ...; the last entry that or more.
  std::vector<uint64_t> staleness;
  uint64_t dropped_pushes = 0;
  // Of the whole job, headers of messages included: 0 through shared memory.
  uint64_t worker_socket_bytes = 0;
  uint64_t server_socket_bytes = 0;
  // Of all workers, and of all lanes; 0: not measured.
  double encode_seconds = 0;
  double decode_seconds = 0;
  std::optional<SettledSchedule> settled;
};

// Errors: NOT_FOUND; ABORTED: the job has not ended in order, or made no step.
absl::StatusOr<RunFigures> ReadRunFigures(const std::string& metrics_path);

// Those after the first `warm_up`; all, where that leaves none.
std::vector<StepPoint> StepsAfter(const RunFigures& figures, uint64_t warm_up);

// Of the last evaluation; none: nothing was evaluated.
std::optional<double> FinalLoss(const RunFigures& figures);

// Of the points of [0, s], with s how stale each update was; 0 of none.
double MeanStaleness(const RunFigures& figures);
// The largest with an update.
uint64_t MostStaleness(const RunFigures& figures);

// Job steps a second from the completion of step `after`, or the first one if there is none such,
// to the end. The last step is left out: it waits for whoever is slow to be through, while the
// others have ended. All steps over all of their time, if all were heard of at once. 0: there are
// none.
double StepRate(const RunFigures& figures, uint64_t after);

}  // namespace tug

#endif  // TUG_EXPERIMENT_RUN_FIGURES_H_
