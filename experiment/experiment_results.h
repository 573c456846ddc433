#ifndef TUG_EXPERIMENT_EXPERIMENT_RESULTS_H_
#define TUG_EXPERIMENT_EXPERIMENT_RESULTS_H_

// What the runs of an experiment file came to, apart from how it is drawn (experiment_report.h).
// Functions are pure and thread-safe.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "experiment/experiment_plan.h"
#include "experiment/experiment_rows.h"
#include "experiment/run_figures.h"
#include "experiment/scheduled_step.h"
#include "experiment/spread.h"
#include "experiment/worker_timeline.h"

namespace tug {

// Of the first repeat of a case, for the sections that draw a run's course.
struct CaseCourse {
  std::optional<RunFigures> figures;
  JobConfig config;                      // as resolved
  std::vector<WorkerTimeline> timeline;  // may be empty
  ScheduledStep scheduled;               // of section SCHEDULING
};

struct ExperimentResults {
  ExperimentPlan plan;
  std::string command;
  std::vector<ExperimentRow> rows;  // of the plan's cases and repeats
  std::vector<CaseCourse> courses;  // by case; empty: no section asks for them

  // Null: it has not ended yet.
  const ExperimentRow* Find(const PlannedCase& one, uint32_t repeat) const;
  // Of the repeats that have one.
  std::vector<double> Values(const PlannedCase& one, const Measure& measure) const;
  // Of them. REQUIRES: there is such a measure.
  std::optional<RepeatSpread> SpreadOf(const PlannedCase& one, const char* measure) const;
  // One case with another, in the repeats that both have. None: there are none.
  std::optional<PairedComparison> CompareWith(size_t number, size_t other,
                                              const Measure& measure) const;
  // The same with its baseline. None: there is none.
  std::optional<PairedComparison> Compare(size_t number, const Measure& measure) const;
  // Its repeats that have ended well.
  size_t Ended(const PlannedCase& one) const;
  size_t Failed() const;
  size_t Missing() const;
};

// "model vgg16, ratio 1": what a case has of the axes that `of` takes, each with its name.
std::string NamedValues(const ExperimentPlan& plan, const PlannedCase& one,
                        absl::FunctionRef<bool(size_t axis)> of);
// "FIFO": its labels of the axes that set what begins so (SetsAny); empty: none does.
std::string LabelsSetting(const ExperimentPlan& plan, const PlannedCase& one,
                          std::span<const char* const> beginnings);
// "step_time, ms".
std::string MeasureHeading(const Measure& measure);
// "12.34 [12.30, 12.41]".
std::string SpreadText(const std::optional<RepeatSpread>& spread, int digits);
// "0.812 [0.790, 0.843]", "+0.0120 [+0.0100, +0.0150]".
std::string ComparedText(const RepeatSpread& spread, const Measure& measure);

// A line for each case: labels, then measures; the first line has the headings.
std::vector<std::vector<std::string>> MeasureTable(const ExperimentResults& results);
// The same of comparisons with the baseline; empty: there is none.
std::vector<std::vector<std::string>> BaselineTable(const ExperimentResults& results);
// Which case is best by each measure, and whether another one might be, a sentence each.
std::vector<std::string> Findings(const ExperimentResults& results);
// Why runs failed, a sentence each.
std::vector<std::string> Failures(const ExperimentResults& results);
// Where, when, by what: each said once, or as a range.
std::vector<std::pair<std::string, std::string>> ResultSettings(const ExperimentResults& results);
// What stands under every comparison with a baseline.
std::string BaselineText(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXPERIMENT_RESULTS_H_
