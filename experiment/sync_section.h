#ifndef TUG_EXPERIMENT_SYNC_SECTION_H_
#define TUG_EXPERIMENT_SYNC_SECTION_H_

#include <vector>

#include "experiment/experiment_results.h"
#include "experiment/sync_results.h"

namespace tug {

// Cases that differ in their sync policy and straggler, as `tug experiment sync` reports on them: a
// part for every combination of the axes that set neither `sync` nor `straggler`. Cases whose
// course is not known are left out. Pure, thread-safe.
std::vector<SyncPart> SyncPartsOf(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SYNC_SECTION_H_
