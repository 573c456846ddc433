#ifndef TUG_EXPERIMENT_TIMELINE_SVG_H_
#define TUG_EXPERIMENT_TIMELINE_SVG_H_

// Timelines drawn one under another on one time axis, as the lectures draw wait-free
// back-propagation, ByteScheduler and the ideal case. Colours that depend on the page (text, lines)
// are its CSS variables: --ink, --faint, --grid, --wait.

#include <optional>
#include <string>
#include <vector>

#include "experiment/timeline.h"

namespace tug {

struct DrawnTimeline {
  std::string name;
  const Timeline* timeline = nullptr;
  std::string note;  // behind the name; may be empty
};

// An <svg> of width 1120: for each timeline its rows compute, push and pull; a line where it ends,
// and, across all of them, one at `bound_seconds`. Empty timelines are left out; without any, a
// line of text says so. Pure, thread-safe.
std::string TimelinesSvg(const std::vector<DrawnTimeline>& timelines,
                         const std::vector<std::string>& block_names,
                         std::optional<double> bound_seconds);

// Of the block that the next forward pass needs as number `block` of `count`: from warm (first) to
// cold (last). "hsl(...)"; the backward pass's is the darker.
std::string BlockColor(size_t block, size_t count, bool dark);

}  // namespace tug

#endif  // TUG_EXPERIMENT_TIMELINE_SVG_H_
