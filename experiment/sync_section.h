#ifndef TUG_EXPERIMENT_SYNC_SECTION_H_
#define TUG_EXPERIMENT_SYNC_SECTION_H_

// The section SYNC of an experiment's report: for every combination of the axes that set neither
// who waits for whom nor who is slow, what was found, speed beside its bounds, who waits where (the
// timelines of cases that have one), time of every worker, staleness, and all figures as a table.
// Figures are over the repeats, courses of the first one. Pure, thread-safe.

#include <string>

#include "experiment/experiment_results.h"

namespace tug {

std::string SyncSectionHtml(const ExperimentResults& results);
// Tables and findings.
std::string SyncSectionMarkdown(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SYNC_SECTION_H_
