// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RESULTS_TIMELINE_H_
#define TUG_LAB_EXPERIMENT_RESULTS_TIMELINE_H_

// One worker's cycle in a job: the backward pass of a step, the pushes of its gradients, the pulls
// of the resulting weights, and the forward pass that needs them. As in the lectures' figure.

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

// The cycle that begins with the backward pass of `step` (1-based), for the first worker in a
// trace.json (coordinator/trace/trace_file.h). Blocks are indices into `block_names`. Errors:
// NOT_FOUND (no file), INVALID_ARGUMENT (not a trace, or it lacks this step or the next one).
absl::StatusOr<Timeline> ReadTimeline(const std::string& trace_path, uint64_t step,
                                      const std::vector<std::string>& block_names);

// Spans of one row as if a dedicated link had carried them: in order of arrival, each beginning no
// earlier than the previous arrival, with adjacent spans of a block merged. Turns concurrent
// transfers into a sequence that can be drawn in one line.
std::vector<TimelineSpan> InSequence(const Timeline& timeline, TimelineSpan::Row row);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RESULTS_TIMELINE_H_
