#ifndef TUG_SERVER_RESTORE_H_
#define TUG_SERVER_RESTORE_H_

#include <string>

#include "absl/status/status.h"
#include "exchange/segment_table.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"
#include "server/shard.h"

namespace tug {

// Fills in a shard's segments, its copies too, from a checkpoint: weights, what its optimizer
// keeps, and, where every push is an update, their versions and clocks. Before its first message.
// Errors: CheckpointReader's; FAILED_PRECONDITION (pushes are updates there and not in this job, or
// the other way round; the clocks are of other segments or virtual workers than this job has: both
// are named; a weight is not finite: its tensor is named, and no update could mend it).
absl::Status RestoreSegments(const std::string& folder, const JobConfig& config,
                             const BlockTable& blocks, const SegmentTable& table, Shard& shard);

}  // namespace tug

#endif  // TUG_SERVER_RESTORE_H_
