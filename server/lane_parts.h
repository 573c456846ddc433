// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_LANE_PARTS_H_
#define TUG_SERVER_LANE_PARTS_H_

// A lane's parts of checkpoints, apart from memory, files and threads: which snapshots complete a
// part, and which parts the lane reports.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "checkpoint/part_report.h"

namespace tug {

// Names a lane's parts of checkpoints, and defines when they are complete.
struct LanePlace {
  uint32_t timeline = 1;
  uint32_t placement = 0;   // View.placement
  bool first = true;        // first placement of the timeline: the file name omits it
  uint32_t lane_index = 0;  // index in View.lanes; names the file
  size_t segments = 0;      // number that the lane writes: that many complete a part
};

// Incomplete parts. Under SSP and ASP segments reach a step independently, and may be two steps of
// the job apart, so several parts fill at once, by version. If a segment runs further ahead, the
// oldest part is discarded; workers that push in order never cause that. `Copy` has `uint32_t
// segment` and `std::vector<uint64_t> clocks` (SegmentSnapshot's). Not thread-safe.
template <typename Copy>
class FillingParts {
 public:
  // One more than the two steps that segments can be apart, and one left over.
  static constexpr size_t kMaxFilling = 4;

  struct Part {
    uint64_t version = 0;
    LanePlace place;
    double pause_seconds = 0;
    std::vector<Copy> copies = {};
  };

  // Voids all parts.
  void SetPlace(const LanePlace& place) {
    place_ = place;
    parts_.clear();
  }
  const LanePlace& place() const { return place_; }

  // Whether a snapshot of this version begins a part.
  bool Begins(uint64_t version) const {
    return !GivenUp(version) && std::ranges::count(parts_, version, &Part::version) == 0;
  }
  // The part that lacks this segment at this version; null: it has the segment, or is discarded.
  // Valid until the next call.
  Part* Lacking(uint32_t segment, uint64_t version) {
    if (Begins(version)) Begin(version);
    const auto part = std::ranges::find(parts_, version, &Part::version);
    if (part == parts_.end() || std::ranges::count(part->copies, segment, &Copy::segment) > 0) {
      return nullptr;
    }
    return &*part;
  }
  bool IsComplete(const Part& part) const { return part.copies.size() == place_.segments; }
  // Removes a complete part; older ones can no longer be completed, since all segments have passed
  // them.
  Part Take(Part* complete) {
    Part part = std::move(*complete);
    parts_.erase(parts_.begin(), parts_.begin() + (complete - parts_.data()) + 1);
    return part;
  }

 private:
  bool GivenUp(uint64_t version) const {
    return parts_.size() == kMaxFilling && version < parts_.front().version;
  }
  void Begin(uint64_t version) {
    if (parts_.size() == kMaxFilling) parts_.erase(parts_.begin());
    const auto newer = std::ranges::upper_bound(parts_, version, {}, &Part::version);
    parts_.insert(newer, {.version = version, .place = place_});
  }

  LanePlace place_;
  std::vector<Part> parts_;  // oldest first
};

// The report of a complete part, apart from its file.
template <typename Part>
CheckpointPart ReportOf(const Part& part) {
  CheckpointPart report;
  report.set_lane(part.place.lane_index);
  report.set_placement(part.place.placement);
  report.set_version(part.version);
  report.set_pause_seconds(part.pause_seconds);
  // By virtual worker: first clock that a segment lacks; none if segments have no clocks.
  for (const auto& copy : part.copies) {
    if (copy.clocks.empty()) continue;
    const std::span<const uint64_t> next = std::span(copy.clocks).subspan(1);
    auto& clocks = *report.mutable_clocks();
    if (clocks.empty()) clocks.Assign(next.begin(), next.end());
    for (int vw = 0; vw < clocks.size(); ++vw) {
      clocks[vw] = std::min(clocks[vw], next[static_cast<size_t>(vw)]);
    }
  }
  return report;
}

// Parts of the current placement, reported in each heartbeat. Not thread-safe.
class LanePartReports {
 public:
  // Voids all parts.
  void SetPlace(const LanePlace& place) {
    place_ = place;
    reports_.Clear();
  }
  const LanePlace& place() const { return place_; }

  // A part of an earlier placement is ignored.
  void Add(CheckpointPart part) {
    if (part.placement() == place_.placement) reports_.Add(std::move(part));
  }
  // The coordinator answered this heartbeat.
  void OnHeard(const HeartbeatRequest& sent) {
    for (const CheckpointPart& part : sent.parts()) {
      if (part.lane() != place_.lane_index || part.placement() != place_.placement) continue;
      reports_.OnHeard(part.version());
    }
  }
  std::vector<CheckpointPart> parts() const {
    return {reports_.parts().begin(), reports_.parts().end()};
  }

 private:
  LanePlace place_;
  PartReports reports_;
};

}  // namespace tug

#endif  // TUG_SERVER_LANE_PARTS_H_
