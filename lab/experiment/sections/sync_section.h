// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_SECTIONS_SYNC_SECTION_H_
#define TUG_LAB_EXPERIMENT_SECTIONS_SYNC_SECTION_H_

// The section SYNC of an experiment's report. For every combination of the axes that set neither
// sync mode nor straggler: findings, speed with its bounds, where workers wait (timelines of traced
// cases), time of every worker, staleness, and all figures as a table. Figures are over the
// repeats, courses of the first one. Pure, thread-safe.

#include <string>

#include "lab/experiment/results/experiment_results.h"

namespace tug {

std::string SyncSectionHtml(const ExperimentResults& results);
// Tables and findings.
std::string SyncSectionMarkdown(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_SECTIONS_SYNC_SECTION_H_
