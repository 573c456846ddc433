#ifndef TUG_EXPERIMENT_SCHEDULING_RESULTS_H_
#define TUG_EXPERIMENT_SCHEDULING_RESULTS_H_

// What `tug experiment scheduling` found out, apart from how it is drawn (scheduling_report.h).
// Functions are pure, except for those that read a run's metrics, and thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/median.h"
#include "experiment/link_plan.h"
#include "experiment/timeline.h"
#include "nlohmann/json.hpp"

namespace tug {

// Names of policies with a meaning of their own: what others are compared with, and the one whose
// sizes are found while it runs (comm.scheduler AUTO).
inline constexpr char kFifoPolicy[] = "fifo";
inline constexpr char kAutoPolicy[] = "auto";

// Of the measured steps of a job, in order: means over the workers; overlap of the one that hid
// least (coordinator/metrics_log.h).
struct StepSeries {
  std::vector<double> seconds;
  std::vector<double> exposed_seconds;
  std::vector<double> overlap;
};

// From a metrics.jsonl, steps first_step to last_step (1-based). Errors: NOT_FOUND; ABORTED if one
// of them is not there.
absl::StatusOr<StepSeries> ReadStepSeries(const std::string& metrics_path, uint64_t first_step,
                                          uint64_t last_step);

// What comm.scheduler AUTO chose.
struct TunedSchedule {
  uint64_t partition_bytes = 0;
  uint64_t credit_bytes = 0;
};

// From the metrics.jsonl of a job that has ended: the schedule that was settled on before a step,
// and kept. None: steps after it were of trials. Errors: NOT_FOUND.
absl::StatusOr<std::optional<TunedSchedule>> ReadTunedSchedule(const std::string& metrics_path,
                                                               uint64_t before_step);

// A job's step as worked out, not measured.
struct WorkedOutStep {
  double seconds = 0;
  double exposed_seconds = 0;
  Timeline timeline;  // may be empty
};

struct PolicyResult {
  std::string policy;  // "fifo"
  StepSeries steps;
  Timeline timeline;                       // may be empty
  std::optional<WorkedOutStep> predicted;  // by simulation
  std::optional<TunedSchedule> tuned;      // of "auto", if all measured steps were under it

  // "fifo"; "auto (32 KiB, credit 128 KiB)", "auto (not settled)".
  std::string Label() const;
  double seconds() const { return Median(steps.seconds); }
};

// One profile at one ratio, under every policy.
struct SchedulingCase {
  std::string profile;              // its own name
  std::string source;               // as replay.profile takes it: the same, or a file
  std::vector<std::string> blocks;  // names, in forward order
  double ratio = 1;                 // of transfer to compute
  ReplayScale scale;
  LinkGrain grain;
  std::vector<PolicyResult> policies;
  std::optional<WorkedOutStep> bound;  // no schedule is faster

  // Step time of "fifo" over the policy's; none without it.
  std::optional<double> SpeedUp(const PolicyResult& policy) const;
  // The policy's step time over the bound's.
  std::optional<double> OverBound(const PolicyResult& policy) const;
  // The predicted step time over the measured one, minus 1.
  static std::optional<double> Deviation(const PolicyResult& policy);
};

struct SchedulingResults {
  std::string command;  // as it was called
  // What the figures rest on, name and value: hosts, link, steps, version, ...
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<SchedulingCase> cases;
};

// A line for each case and policy: cells as text; the first line has the headings.
std::vector<std::vector<std::string>> ResultsTable(const SchedulingResults& results);
// The same as a table of Markdown, aligned.
std::string ResultsMarkdown(const SchedulingResults& results);
// All figures, also of each step; no timelines.
nlohmann::ordered_json ResultsJson(const SchedulingResults& results);

// "gpt2_124m, ratio 0.5".
std::string CaseTitle(const SchedulingCase& c);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SCHEDULING_RESULTS_H_
