// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_SECTIONS_SCHEDULING_SECTION_H_
#define TUG_LAB_EXPERIMENT_SECTIONS_SCHEDULING_SECTION_H_

// The section SCHEDULING: cases that differ in their order of sending (comm.scheduler) side by
// side. Figures are medians over repeats; bound, prediction, timelines and the schedule that AUTO
// settled on come from the first repeat. Pure, thread-safe.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lab/experiment/measures/spread.h"
#include "lab/experiment/results/experiment_results.h"

namespace tug {

// A measured case.
struct OrderResult {
  size_t number = 0;  // of the case in the plan
  std::string order;  // its value of the axis that sets comm.scheduler: "FIFO"
  std::string label;  // `order`; for AUTO "AUTO (32 KiB, credit 128 KiB)" or "AUTO (not settled)"
  RepeatSpread milliseconds;  // per step, mean over workers
  double exposed_milliseconds = 0;
  double overlap_percent = 0;
  // FIFO's step time over this one's, by repeat; none: no FIFO case to compare with.
  std::optional<RepeatSpread> speed_up;
  std::optional<double> over_bound;  // step time over that of the lower bound
  std::optional<double> deviation;   // predicted over measured step time, minus 1
};

// Cases with the same values of all other axes.
struct OrderGroup {
  std::string title;  // "model vgg16, ratio 0.5"
  std::vector<OrderResult> orders;
  std::optional<size_t> bound_of;  // the case whose course has the lower bound
};

std::vector<OrderGroup> OrderGroupsOf(const ExperimentResults& results);

// Speed-up, bound and prediction in words, a sentence each.
std::vector<std::string> SchedulingFindings(const std::vector<OrderGroup>& groups);
// A row per case; the first row has the headings.
std::vector<std::vector<std::string>> SchedulingTable(const ExperimentResults& results,
                                                      const std::vector<OrderGroup>& groups);

// Findings, step times as bars, the table, and for each group the timelines of its orders one below
// another, with the fluid schedule of the bound last. "": nothing has been measured yet.
std::string SchedulingHtml(const ExperimentResults& results);
// Like SchedulingHtml, as Markdown without pictures.
std::string SchedulingMarkdown(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_SECTIONS_SCHEDULING_SECTION_H_
