#ifndef TUG_CHECKPOINT_PART_REPORT_H_
#define TUG_CHECKPOINT_PART_REPORT_H_

#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"
#include "proto/control.pb.h"

namespace tug {

// Writes into what the coordinator is told of a part how its file came out: name, size, checksum
// and seconds, or the error.
void ReportFile(const absl::StatusOr<PartFile>& file, CheckpointPart& part);

}  // namespace tug

#endif  // TUG_CHECKPOINT_PART_REPORT_H_
