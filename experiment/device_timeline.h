#ifndef TUG_EXPERIMENT_DEVICE_TIMELINE_H_
#define TUG_EXPERIMENT_DEVICE_TIMELINE_H_

// When the device that computes a model was at work over some steps, and what it stood still for:
// the bubbles of offloaded training. Of a GPU by its own clock, of a CPU by the compute thread's.
//
// A step of the device lasts from the end of its work on the step before to the end of its own.
// Where it stands still in between, it is
//   BP bubble  before the step's first forward pass, until servers have made the last of the
//              weights that come of the backward pass before it (their last optimizer span of the
//              step before)
//   FP bubble  the rest of that, and before every other forward pass: weights are on their way
//   other      before any other work
// Lectures: MemFerry, "BP bubble" and "FP bubble".

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

struct DeviceSpan {
  enum class Kind { kForward, kBackward, kUpdate };
  Kind kind = Kind::kForward;
  uint64_t step = 0;         // 1-based
  double begin_seconds = 0;  // since the first span of the timeline began
  double end_seconds = 0;

  friend bool operator==(const DeviceSpan&, const DeviceSpan&) = default;
};

struct DeviceTimeline {
  bool on_gpu = false;
  std::vector<DeviceSpan> spans;          // in order, apart from one another
  std::map<uint64_t, double> updated_at;  // by step: when servers had made the last weights of it
};

// Of the first worker in a trace.json (coordinator/trace_file.h). Errors: NOT_FOUND (no file),
// INVALID_ARGUMENT (no trace, or nothing of a worker in it).
absl::StatusOr<DeviceTimeline> ReadDeviceTimeline(const std::string& trace_path);

// A time in which it stood still, in a step whose step before is in the timeline too.
struct DeviceGap {
  enum class Kind { kBpBubble, kFpBubble, kOther };
  Kind kind = Kind::kOther;
  uint64_t step = 0;
  double begin_seconds = 0;  // of the timeline
  double end_seconds = 0;

  friend bool operator==(const DeviceGap&, const DeviceGap&) = default;
};
// In order; none is empty. Pure; so are all below.
std::vector<DeviceGap> DeviceGaps(const DeviceTimeline& timeline);

struct DeviceStep {
  uint64_t step = 0;
  double begin_seconds = 0;  // of the timeline
  double end_seconds = 0;
  double busy_seconds = 0;
  double bp_bubble_seconds = 0;
  double fp_bubble_seconds = 0;
  double other_seconds = 0;

  double seconds() const { return end_seconds - begin_seconds; }
};

// Those whose step before is in the timeline too.
std::vector<DeviceStep> DeviceSteps(const DeviceTimeline& timeline);

// The part of all of them in which it was at work. NaN: of none.
double Utilisation(const std::vector<DeviceStep>& steps);

// Of each of `windows` equal windows of [begin, end), the part in which it was at work.
std::vector<double> UtilisationOver(const DeviceTimeline& timeline, double begin_seconds,
                                    double end_seconds, size_t windows);

}  // namespace tug

#endif  // TUG_EXPERIMENT_DEVICE_TIMELINE_H_
