#ifndef TUG_CHECKPOINT_PART_REPORT_H_
#define TUG_CHECKPOINT_PART_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"
#include "proto/control.pb.h"

namespace tug {

// Writes into what the coordinator is told of a part how its file came out: name, size, checksum
// and seconds, or the error.
void ReportFile(const absl::StatusOr<PartFile>& file, CheckpointPart& part);

// The parts of one writer (a lane, or a virtual worker) that go into each heartbeat: all that no
// answered heartbeat has carried, however many steps pass between two heartbeats, and the newest
// kRepeated in any case, since the coordinator may have been changing the view. Not thread-safe.
class PartReports {
 public:
  static constexpr size_t kRepeated = 8;
  static constexpr size_t kMost = 1024;  // kept while no heartbeat is answered

  // REQUIRES: newer than those before.
  void Add(CheckpointPart part);
  // A heartbeat was answered that carried the parts up to this version.
  void OnHeard(uint64_t version);
  // Drops the parts of newer versions: they are written again.
  void EraseAfter(uint64_t version);
  void Clear();

  // Oldest first.
  const std::deque<CheckpointPart>& parts() const { return parts_; }

 private:
  void Trim();

  std::deque<CheckpointPart> parts_;
  size_t heard_ = 0;  // at the front of parts_
};

}  // namespace tug

#endif  // TUG_CHECKPOINT_PART_REPORT_H_
