// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_CHARTS_TIMELINE_SVG_H_
#define TUG_LAB_EXPERIMENT_CHARTS_TIMELINE_SVG_H_

// Timelines drawn one below another on one time axis, as the lectures draw wait-free
// back-propagation, ByteScheduler and the ideal case.

#include <optional>
#include <string>
#include <vector>

#include "lab/experiment/results/timeline.h"

namespace tug {

struct DrawnTimeline {
  std::string name;
  const Timeline* timeline = nullptr;
  std::string note;  // after the name; may be empty
};

// An <svg> of width 1120: for each timeline the rows compute, push and pull, and a line at its end;
// across all of them a line at `bound_seconds`. Skips empty timelines; without any, returns a line
// of text that none was recorded. Pure, thread-safe.
std::string TimelinesSvg(const std::vector<DrawnTimeline>& timelines,
                         const std::vector<std::string>& block_names,
                         std::optional<double> bound_seconds);

// Colour ("hsl(...)") of block number `block` of `count` in forward order: from warm (first) to
// cold (last). `dark`: the darker shade, used for all spans except forward passes.
std::string BlockColor(size_t block, size_t count, bool dark);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_CHARTS_TIMELINE_SVG_H_
