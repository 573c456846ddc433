#ifndef TUG_EXPERIMENT_SCHEDULING_SECTION_H_
#define TUG_EXPERIMENT_SCHEDULING_SECTION_H_

// The section SCHEDULING: cases that differ in their order of sending (comm.scheduler) side by
// side. Figures are medians over repeats; bound, prediction, timelines and what AUTO settled on are
// of the first one. Pure, thread-safe.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment_results.h"
#include "experiment/spread.h"

namespace tug {

// A case that has been measured.
struct OrderResult {
  size_t number = 0;  // of the case in the plan
  std::string order;  // its value of the axis that sets comm.scheduler: "FIFO"
  std::string label;  // the same; of AUTO "AUTO (32 KiB, credit 128 KiB)", "AUTO (not settled)"
  RepeatSpread milliseconds;  // a step, the mean over workers
  double exposed_milliseconds = 0;
  double overlap_percent = 0;
  // FIFO's step time over this one's, repeat by repeat; none: there is no FIFO to compare with.
  std::optional<RepeatSpread> speed_up;
  std::optional<double> over_bound;  // the step time over that of the lower bound
  std::optional<double> deviation;   // the predicted step time over the measured one, minus 1
};

// Cases that have the same values of all other axes.
struct OrderGroup {
  std::string title;  // "model vgg16, ratio 0.5"
  std::vector<OrderResult> orders;
  std::optional<size_t> bound_of;  // the case whose course has the lower bound
};

std::vector<OrderGroup> OrderGroupsOf(const ExperimentResults& results);

// Speed-up, bound and prediction in words, a sentence each.
std::vector<std::string> SchedulingFindings(const std::vector<OrderGroup>& groups);
// A line for each case; the first one has the headings.
std::vector<std::vector<std::string>> SchedulingTable(const ExperimentResults& results,
                                                      const std::vector<OrderGroup>& groups);

// What is found out, step times as bars, the table, and for each group the timelines of its orders
// one under another, the fluid schedule of the bound last. "": nothing has been measured yet.
std::string SchedulingHtml(const ExperimentResults& results);
// The same without pictures.
std::string SchedulingMarkdown(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SCHEDULING_SECTION_H_
