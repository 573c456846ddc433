// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RESULTS_DEVICE_TIMELINE_H_
#define TUG_LAB_EXPERIMENT_RESULTS_DEVICE_TIMELINE_H_

// When the device that computes a model was busy during some steps, and why it was idle: the
// bubbles of offloaded training. Times of a GPU are by its own clock, of a CPU by the compute
// thread's.
//
// A step of the device lasts from the end of its work on the previous step to the end of its own
// work. Idle time in between is a
//   BP bubble  before the step's first forward pass, until servers have made the last of the
//              weights that result from the previous backward pass (their last optimizer span of
//              the previous step)
//   FP bubble  the rest of that time, and before every other forward pass: weights are in flight
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
  std::vector<DeviceSpan> spans;          // in order, disjoint
  std::map<uint64_t, double> updated_at;  // by step: when servers had made its last weights
};

// Timeline of the first worker in a trace.json (coordinator/trace/trace_file.h). Errors: NOT_FOUND
// (no file), INVALID_ARGUMENT (not a trace, or no passes of a worker in it).
absl::StatusOr<DeviceTimeline> ReadDeviceTimeline(const std::string& trace_path);

// An idle period, in a step whose previous step is in the timeline too.
struct DeviceGap {
  enum class Kind { kBpBubble, kFpBubble, kOther };
  Kind kind = Kind::kOther;
  uint64_t step = 0;
  double begin_seconds = 0;  // in the timeline
  double end_seconds = 0;

  friend bool operator==(const DeviceGap&, const DeviceGap&) = default;
};
// In order; none is empty. Pure, like all functions below.
std::vector<DeviceGap> DeviceGaps(const DeviceTimeline& timeline);

struct DeviceStep {
  uint64_t step = 0;
  double begin_seconds = 0;  // in the timeline
  double end_seconds = 0;
  double busy_seconds = 0;
  double bp_bubble_seconds = 0;
  double fp_bubble_seconds = 0;
  double other_seconds = 0;

  double seconds() const { return end_seconds - begin_seconds; }
};

// Steps whose previous step is in the timeline too.
std::vector<DeviceStep> DeviceSteps(const DeviceTimeline& timeline);

// Part of all these steps in which the device was busy. NaN: no steps.
double Utilisation(const std::vector<DeviceStep>& steps);

// For each of `windows` equal windows of [begin, end): the part in which the device was busy.
std::vector<double> UtilisationOver(const DeviceTimeline& timeline, double begin_seconds,
                                    double end_seconds, size_t windows);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RESULTS_DEVICE_TIMELINE_H_
