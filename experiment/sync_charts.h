#ifndef TUG_EXPERIMENT_SYNC_CHARTS_H_
#define TUG_EXPERIMENT_SYNC_CHARTS_H_

// The pictures of a part of `tug experiment sync` (sync_report.h): an <svg> each, or "" where there
// is nothing to draw. A mode has the same colour in all of them. Pure, thread-safe.

#include <string>
#include <vector>

#include "experiment/sync_results.h"

namespace tug {

// Modes and stragglers of a part, in the order of its runs.
std::vector<SyncCase> ModesOf(const SyncPart& part);
std::vector<StragglerKind> StragglersOf(const SyncPart& part);

// Losses (loss_panels.h): a row of panels for each straggler, against steps, samples and wall time.
std::string LossPanelsSvg(const SyncPart& part);
// Batches a second, by straggler and mode, with the bounds.
std::string SpeedBarsSvg(const SyncPart& part);
// How every worker spent its steps: a row for each mode, a column for each straggler.
std::string WaitBarsSvg(const SyncPart& part);
// How stale updates were, where each push is one: in the same grid.
std::string StalenessSvg(const SyncPart& part);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SYNC_CHARTS_H_
