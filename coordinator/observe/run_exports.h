// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_RUN_EXPORTS_H_
#define TUG_COORDINATOR_OBSERVE_RUN_EXPORTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/observe/csv_table.h"
#include "coordinator/observe/event_file.h"
#include "coordinator/observe/sync_figures.h"
#include "coordinator/progress/progress.h"
#include "coordinator/progress/timeline.h"
#include "proto/job.pb.h"

namespace tug {

// Steps and evaluations, as in metrics.jsonl, in formats of other programs: RUN/tensorboard
// (watch.tensorboard) and RUN/steps.csv, RUN/evaluations.csv (watch.csv); columns and tags:
// step_columns.h. Written before the line of metrics.jsonl, so each line there has its counterpart
// here. A number that is not finite is "nan" or "inf". Not thread-safe.
class RunExports {
 public:
  struct Run {
    std::string run_dir;
    TimelineStart start;
    bool taken_up = false;  // a process that died has written for the same job
  };

  // `config`: resolved. Errors: as CsvTable::Open.
  static absl::StatusOr<RunExports> Open(const JobConfig& config, const Run& run);

  // `there`: a process that died has written the line in metrics.jsonl.
  void Step(const StepMetrics& metrics, double at_seconds, absl::Time now, bool there);
  void Eval(const EvalMetrics& metrics, double at_seconds, absl::Time now, bool there);
  // The job rolled back to `version`.
  void BeginTimeline(uint32_t number, uint64_t version, absl::Time now, bool there);
  // Sets the servers' counts so far. Steps are written with the mean staleness of the updates
  // between the two newest calls.
  void SetSync(const SyncFigures& figures);

  // Errors: a file cannot be written (disk full).
  absl::Status status() const;

 private:
  explicit RunExports(const JobConfig& config) : config_(config) {}

  JobConfig config_;
  uint32_t timeline_ = 1;
  std::optional<EventFiles> events_;
  std::optional<CsvTable> steps_;
  std::optional<CsvTable> evaluations_;
  SyncFigures sync_;
  double staleness_ = 0;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_RUN_EXPORTS_H_
