#ifndef TUG_EXPERIMENT_TIMELINE_H_
#define TUG_EXPERIMENT_TIMELINE_H_

// One worker's way through one cycle of a job: the backward pass of a step, the pushes of its
// gradients, the pulls of the weights that came of them, and the forward pass that needs those. The
// figure of the lectures.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

struct TimelineSpan {
  enum class Row { kForward, kBackward, kPush, kPull };
  Row row = Row::kForward;
  uint32_t block = 0;
  double begin_seconds = 0;  // from the beginning of the backward pass
  double end_seconds = 0;

  friend bool operator==(const TimelineSpan&, const TimelineSpan&) = default;
};

struct Timeline {
  std::vector<TimelineSpan> spans;
  double seconds = 0;  // to the end of the forward pass

  bool empty() const { return spans.empty(); }
};

// The cycle that begins with the backward pass of `step` (1-based), of the first worker of a
// trace.json (coordinator/trace_file.h); blocks are numbers in `block_names`. Errors: NOT_FOUND
// (no file), INVALID_ARGUMENT (no trace, or that step and the next are not in it).
absl::StatusOr<Timeline> ReadTimeline(const std::string& trace_path, uint64_t step,
                                      const std::vector<std::string>& block_names);

// Spans of one row as a link of its own would have carried them: by arrival, each from the arrival
// of the one before it, neighbours of one block as one. What is on its way side by side becomes a
// sequence that can be drawn in one line.
std::vector<TimelineSpan> InSequence(const Timeline& timeline, TimelineSpan::Row row);

}  // namespace tug

#endif  // TUG_EXPERIMENT_TIMELINE_H_
