#ifndef TUG_EXPERIMENT_SYNC_REPORT_H_
#define TUG_EXPERIMENT_SYNC_REPORT_H_

#include <string>

#include "experiment/sync_results.h"

namespace tug {

// Steps of the slowest worker that the timelines of the page reach to.
inline constexpr size_t kDrawnSteps = 3;

// A page as report_page.h has it. For each part: what was found, speed, who waits where (the
// timelines of runs that have one), wait time by worker, staleness, losses against steps, samples
// and wall time, and all figures as a table. Pure, thread-safe.
std::string SyncReportHtml(const SyncResults& results);
// One part of it, with its heading.
std::string SyncPartHtml(const SyncPart& part);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SYNC_REPORT_H_
