#ifndef TUG_COORDINATOR_METRICS_LOG_H_
#define TUG_COORDINATOR_METRICS_LOG_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/critical_path.h"
#include "coordinator/loss_curve.h"
#include "coordinator/progress.h"
#include "coordinator/schedule_tuning.h"
#include "coordinator/step_metrics.h"
#include "proto/job.pb.h"

namespace tug {

// metrics.jsonl of a run folder: one JSON object a line, each with "kind" and "timeline".
//   step        step, at_seconds (since the coordinator began), loss (mean over targets), tokens,
//               seconds, tokens_per_second, wait_seconds, pushed_bytes, pulled_bytes,
//               compute_seconds, communication_seconds, overlap, mean_seconds, mean_wait_seconds
//               (step_metrics.h); where they are not 0: straggle_seconds, skipped
//   eval        step, at_seconds, loss, perplexity, accuracy, targets; "final": true of the last
//               one of a job, over the whole validation split
//   checkpoint  step, folder, pause_seconds, write_seconds
//   trial       of the tuner's (comm.scheduler AUTO): step, trial, partition_bytes, credit_bytes,
//               seconds (a step), predicted_seconds (null: nothing was)
//   settled     step, trials, partition_bytes, credit_bytes, seconds, first_seconds (of what it
//               began with)
//   notice      text; also of nodes that were lost
//   critical_path
//               of each traced step, when all are over: step, seconds, parts: what, who, seconds,
//               the largest first (blame.h)
//   worker      before the end, of each virtual worker: virtual_worker, steps, skipped (of them),
//               seconds, compute_seconds, wait_seconds, straggle_seconds
//   node        before the end, of each node that is there: node, role ("server", "worker"),
//               socket_bytes, and what it held for training, the most of each at a time:
//               weight_bytes, gradient_bytes, optimizer_bytes, sum_bytes, cached_bytes,
//               predicted_held_bytes (NodeCounters); those that are 0 are left out
//   end         step, reason ("done", "stopped", "stopped early"); with an evaluation also
//               best_step, best_loss; sync (the policy), updates, staleness (how many had 0, 1, 2,
//               ...; only entry 255: that or more), mean_staleness, dropped_pushes
//               (sync_figures.h); worker_socket_bytes, server_socket_bytes, and where they are not
//               0 encode_seconds, decode_seconds
// A number that is not finite is null. A run that is resumed appends; a step that was run again
// stands in it twice, the later line counts. Not thread-safe.
class MetricsLog {
 public:
  // Opens for appending. A last line that is not whole is cut off. Errors: those of the file
  // system, naming the file.
  static absl::StatusOr<MetricsLog> Open(const std::string& path, uint32_t timeline);
  // Opens one that a process which died has written to since it was `from_bytes` long. Whoever says
  // again what that process said, but for critical paths, gets as many lines not written as stand
  // there. Otherwise as Open.
  static absl::StatusOr<MetricsLog> Continue(const std::string& path, uint32_t timeline,
                                             uint64_t from_bytes);

  void Step(const StepMetrics& metrics, double at_seconds);
  void Eval(const EvalMetrics& metrics, double at_seconds);
  void Checkpoint(uint64_t step, const std::string& folder, double pause_seconds,
                  double write_seconds);
  void Trial(const TrialMetrics& metrics);
  void Settled(const SettledMetrics& metrics);
  void Notice(const std::string& text);
  void CriticalPaths(const std::vector<StepPath>& paths);
  void Workers(const WorkerTotals& workers);
  void Nodes(const StatusReply& status);
  void End(const StatusReply& status, const SyncConfig& sync, const std::string& reason);

  // Whether the next line stands there already.
  bool is_behind() const { return lines_there_ > 0; }

  // What is written from now on is of this timeline: the job has gone back to an earlier step.
  void SetTimeline(uint32_t timeline) { timeline_ = timeline; }

  // Hands what was written to the operating system. Errors: the first that writing met (disk full).
  absl::Status Flush();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  MetricsLog(std::string path, uint32_t timeline, std::FILE* file)
      : path_(std::move(path)), timeline_(timeline), file_(file) {}

  void Write(const std::string& line);

  std::string path_;
  uint32_t timeline_;
  std::unique_ptr<std::FILE, Close> file_;
  uint64_t lines_there_ = 0;  // that are not written again
  int error_ = 0;             // errno of the first failed write
};

// Reads the losses of a metrics.jsonl; a damaged line (cut off by a kill) is left out.
// Errors: NOT_FOUND, naming the file.
absl::StatusOr<LossCurve> ReadLossCurve(const std::string& path);

// Its evaluations in order of step, the last one of a job after another of its step; version, loss
// (NaN where it was not finite) and `final` only. Damaged lines and errors: as ReadLossCurve.
absl::StatusOr<std::vector<EvalMetrics>> ReadEvaluations(const std::string& path);

}  // namespace tug

#endif  // TUG_COORDINATOR_METRICS_LOG_H_
