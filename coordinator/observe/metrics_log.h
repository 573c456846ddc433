// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_METRICS_LOG_H_
#define TUG_COORDINATOR_OBSERVE_METRICS_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file.h"
#include "coordinator/observe/loss_curve.h"
#include "coordinator/progress/progress.h"
#include "coordinator/progress/schedule_tuning.h"
#include "coordinator/progress/step_metrics.h"
#include "coordinator/trace/critical_path.h"
#include "proto/job.pb.h"

namespace tug {

// metrics.jsonl of a run folder: one JSON object per line, each with "kind" and "timeline".
//  step        step, and the columns of step_columns.h
//  eval        step, at_seconds, loss, perplexity, accuracy, targets; "final": true for the last
//              one of a job, over the whole validation split
//  checkpoint  step, folder, pause_seconds, write_seconds
//  trial       a trial of the tuner (comm.scheduler AUTO): step, trial, partition_bytes,
//              credit_bytes, seconds (per step), predicted_seconds (null: no prediction)
//  settled     step, trials, partition_bytes, credit_bytes, seconds, first_seconds (of the first
//              schedule)
//  notice      text; lost nodes too
//  settings    before the first step of a resumed run: step (that it resumes from), changed
//              (settings that differ from its checkpoint's: "train.steps 300 -> 600"; may be empty)
//  critical_path
//              for each traced step, after the last of them: step, seconds, parts: what, who,
//              seconds, the largest first (blame.h)
//  worker      before the end, for each virtual worker: virtual_worker, steps, skipped (of steps),
//              seconds, compute_seconds, wait_seconds, straggle_seconds
//  node        before the end, for each current node: node (name), role ("server", "worker"),
//              socket_bytes, and peak memory held for training: weight_bytes, gradient_bytes,
//              optimizer_bytes, sum_bytes, cached_bytes, predicted_held_bytes (NodeCounters), those
//              that are not 0
//  end         step, reason ("done", "stopped", "stopped early"); with an evaluation also
//              best_step, best_loss; sync (the policy), updates, staleness (how many had 0, 1, 2,
//              ...; only entry 255: that or more), mean_staleness, dropped_pushes
//              (sync_figures.h); worker_socket_bytes, server_socket_bytes, and if not 0
//              encode_seconds, decode_seconds
// A number that is not finite is null. A resumed run appends; a repeated step has two lines, of
// which the later one counts. Not thread-safe.
class MetricsLog {
 public:
  // Opens for appending and cuts off an incomplete last line. Errors: those of the file system,
  // naming the file.
  static absl::StatusOr<MetricsLog> Open(const std::string& path, uint32_t timeline);
  // Opens the log of a process that died, which has added lines since the file was `from_bytes`
  // long. The caller repeats what that process logged, except critical paths: as many lines as
  // exist are skipped. Otherwise as Open.
  static absl::StatusOr<MetricsLog> Continue(const std::string& path, uint32_t timeline,
                                             uint64_t from_bytes);

  void Step(const StepMetrics& metrics, double at_seconds);
  void Eval(const EvalMetrics& metrics, double at_seconds);
  void Checkpoint(uint64_t step, const std::string& folder, double pause_seconds,
                  double write_seconds);
  void Trial(const TrialMetrics& metrics);
  void Settled(const SettledMetrics& metrics);
  void Notice(const std::string& text);
  void Settings(const SettingsChange& change);
  void CriticalPaths(const std::vector<StepPath>& paths);
  void Workers(const WorkerTotals& workers);
  void Nodes(const StatusReply& status);
  void End(const StatusReply& status, const SyncConfig& sync, const std::string& reason);

  // Whether the next line exists already.
  bool is_behind() const { return lines_there_ > 0; }

  // Later lines belong to this timeline: the job rolled back.
  void SetTimeline(uint32_t timeline) { timeline_ = timeline; }

  // Flushes to the operating system. Errors: the first write error (disk full).
  absl::Status Flush();

 private:
  MetricsLog(std::string path, uint32_t timeline, FileStream file)
      : path_(std::move(path)), timeline_(timeline), file_(std::move(file)) {}

  void Write(const std::string& line);

  std::string path_;
  uint32_t timeline_;
  FileStream file_;
  uint64_t lines_there_ = 0;  // existing lines still to skip
  int error_ = 0;             // errno of the first failed write
};

// Reads the losses of a metrics.jsonl, and the changes of settings that hold: a run resumed from an
// earlier step makes later ones void. Skips damaged lines (cut off by a kill). Errors: NOT_FOUND,
// naming the file.
absl::StatusOr<LossCurve> ReadLossCurve(const std::string& path);

// Reads the evaluations in order of step, the final one after another of its step; only version,
// loss (NaN if not finite) and `final`. Damaged lines and errors: as ReadLossCurve.
absl::StatusOr<std::vector<EvalMetrics>> ReadEvaluations(const std::string& path);

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_METRICS_LOG_H_
