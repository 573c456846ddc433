#ifndef TUG_EXPERIMENT_SYNC_CHARTS_H_
#define TUG_EXPERIMENT_SYNC_CHARTS_H_

// The pictures of cases that differ in their sync policy and straggler (sync_section.h): an <svg>
// each, or "" where there is nothing to draw. A mode has the same colour in all of them. Pure,
// thread-safe.

#include <string>

#include "experiment/sync_results.h"

namespace tug {

// Batches a second, by straggler and mode, with the bounds: medians, and lines across their ends
// from the smallest to the largest.
std::string SpeedBarsSvg(const SyncPart& part);
// How every worker spent its steps in the first repeat: a row for each mode, a column for each
// straggler.
std::string WaitBarsSvg(const SyncPart& part);
// How stale updates were in the first repeat, where each push is one: in the same grid.
std::string StalenessSvg(const SyncPart& part);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SYNC_CHARTS_H_
