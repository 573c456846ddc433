// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RESULTS_EXPERIMENT_RESULTS_H_
#define TUG_LAB_EXPERIMENT_RESULTS_EXPERIMENT_RESULTS_H_

// Results of the runs of an experiment file, independent of how they are drawn
// (lab/experiment/experiment_report.h). Functions are pure and thread-safe.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "lab/experiment/measures/run_figures.h"
#include "lab/experiment/measures/spread.h"
#include "lab/experiment/plan/experiment_plan.h"
#include "lab/experiment/results/experiment_rows.h"
#include "lab/experiment/results/scheduled_step.h"
#include "lab/experiment/results/worker_timeline.h"

namespace tug {

// The first repeat of a case, for the sections that draw the course of a run.
struct CaseCourse {
  std::optional<RunFigures> figures;
  JobConfig config;                      // resolved
  std::vector<WorkerTimeline> timeline;  // may be empty
  ScheduledStep scheduled;               // for section SCHEDULING
};

struct ExperimentResults {
  ExperimentPlan plan;
  std::string command;
  std::vector<ExperimentRow> rows;  // of the plan's cases and repeats
  std::vector<CaseCourse> courses;  // by case; empty: no section needs them

  // Null: that run has not ended yet.
  const ExperimentRow* Find(const PlannedCase& one, uint32_t repeat) const;
  // Values of the repeats that have one.
  std::vector<double> Values(const PlannedCase& one, const Measure& measure) const;
  // Spread of these values. REQUIRES: the measure exists.
  std::optional<RepeatSpread> SpreadOf(const PlannedCase& one, const char* measure) const;
  // Compares two cases over the repeats that both have. None: no such repeat.
  std::optional<PairedComparison> CompareWith(size_t number, size_t other,
                                              const Measure& measure) const;
  // Compares a case with its baseline. None: no baseline, or no repeat that both have.
  std::optional<PairedComparison> Compare(size_t number, const Measure& measure) const;
  // Number of repeats that ended without an error.
  size_t Ended(const PlannedCase& one) const;
  size_t Failed() const;
  size_t Missing() const;
};

// "model vgg16, ratio 1": values of a case on the axes that `of` selects, each with the axis's
// name.
std::string NamedValues(const ExperimentPlan& plan, const PlannedCase& one,
                        absl::FunctionRef<bool(size_t axis)> of);
// "FIFO": labels of a case on the axes that set a field with one of these prefixes (SetsAny);
// empty: no such axis.
std::string LabelsSetting(const ExperimentPlan& plan, const PlannedCase& one,
                          std::span<const char* const> beginnings);
// "12.34 [12.30, 12.41]".
std::string SpreadText(const std::optional<RepeatSpread>& spread, int digits);
// "0.812 [0.790, 0.843]", "+0.0120 [+0.0100, +0.0150]".
std::string ComparedText(const RepeatSpread& spread, const Measure& measure);

// A row per case: labels, then measures; the first row has the headings.
std::vector<std::vector<std::string>> MeasureTable(const ExperimentResults& results);
// Like MeasureTable, for comparisons with the baseline; empty: no baseline.
std::vector<std::vector<std::string>> BaselineTable(const ExperimentResults& results);
// The best case by each measure, and the number of others that might be as good; a sentence each.
std::vector<std::string> Findings(const ExperimentResults& results);
// Reasons of failed runs, a sentence each.
std::vector<std::string> Failures(const ExperimentResults& results);
// "12 cases, 3 repeats each"
std::string RunsText(uint64_t cases, uint64_t repeats);
// Machine, commit, dates and settings of the runs: each distinct value once, or a range.
std::vector<std::pair<std::string, std::string>> ResultSettings(const ExperimentResults& results);
// Explanation of comparisons with a baseline.
std::string BaselineText(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RESULTS_EXPERIMENT_RESULTS_H_
