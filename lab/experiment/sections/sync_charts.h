// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_SECTIONS_SYNC_CHARTS_H_
#define TUG_LAB_EXPERIMENT_SECTIONS_SYNC_CHARTS_H_

// Pictures of cases that differ in their sync policy and straggler (sync_section.h): an <svg> each,
// or "" if there is nothing to draw. A mode has the same colour in all of them. Pure, thread-safe.

#include <string>

#include "lab/experiment/sections/sync_results.h"

namespace tug {

// Batches per second, by straggler and mode, with the bounds: medians, and lines across their ends
// from the smallest to the largest.
std::string SpeedBarsSvg(const SyncPart& part);
// How every worker spent its steps in the first repeat: a row per mode, a column per straggler.
std::string WaitBarsSvg(const SyncPart& part);
// Staleness of updates in the first repeat, for modes in which each push is an update; in the same
// grid.
std::string StalenessSvg(const SyncPart& part);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_SECTIONS_SYNC_CHARTS_H_
