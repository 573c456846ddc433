// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CHECKPOINT_PART_REPORT_H_
#define TUG_CHECKPOINT_PART_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"
#include "proto/control.pb.h"

namespace tug {

// Fills in the outcome of writing a part's file, for the coordinator: name, size, checksum and
// seconds, or the error.
void ReportFile(const absl::StatusOr<PartFile>& file, CheckpointPart& part);

// Parts of one writer (a lane, or a virtual worker) to report in each heartbeat: all parts not yet
// in an acknowledged heartbeat, however many steps pass between heartbeats, and always the newest
// kRepeated, because the coordinator may have been changing the view. Not thread-safe.
class PartReports {
 public:
  static constexpr size_t kRepeated = 8;
  static constexpr size_t kMost = 1024;  // limit while no heartbeat is acknowledged

  // REQUIRES: `part` is newer than the ones before.
  void Add(CheckpointPart part);
  // The coordinator acknowledged a heartbeat with the parts up to this version.
  void OnHeard(uint64_t version);
  // Drops the parts of newer versions, which will be written again.
  void EraseAfter(uint64_t version);
  void Clear();

  // Oldest first.
  const std::deque<CheckpointPart>& parts() const { return parts_; }

 private:
  void Trim();

  std::deque<CheckpointPart> parts_;
  size_t heard_ = 0;  // acknowledged parts at the front of parts_
};

}  // namespace tug

#endif  // TUG_CHECKPOINT_PART_REPORT_H_
