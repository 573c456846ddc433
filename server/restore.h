// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_RESTORE_H_
#define TUG_SERVER_RESTORE_H_

#include <string>

#include "absl/status/status.h"
#include "blocks/segment_table.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"
#include "server/shard/shard.h"

namespace tug {

// Restores a shard's segments, replicas included, from a checkpoint: weights, optimizer state and,
// under SSP and ASP, versions and clocks. Call before the first message. Errors: those of
// CheckpointReader; DATA_LOSS (a wrong number of clocks); FAILED_PRECONDITION: only one of
// checkpoint and job has clocks; the clocks belong to other segments or virtual workers (both sizes
// are named); a weight is not finite (its tensor is named; no update could repair it).
absl::Status RestoreSegments(const std::string& folder, const JobConfig& config,
                             const BlockTable& blocks, const SegmentTable& table, Shard& shard);

}  // namespace tug

#endif  // TUG_SERVER_RESTORE_H_
