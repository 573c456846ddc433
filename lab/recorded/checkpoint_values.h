// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_RECORDED_CHECKPOINT_VALUES_H_
#define TUG_LAB_RECORDED_CHECKPOINT_VALUES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "blocks/segment_table.h"
#include "checkpoint/checkpoint.h"
#include "lab/recorded/reexecution.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Weights by segment at the start of a job (server/lane.h): those of train.init_from, or random
// ones. Errors: those of WeightsSource.
absl::StatusOr<std::vector<std::vector<float>>> StartWeights(const JobConfig& config,
                                                             const BlockTable& blocks,
                                                             const SegmentTable& table);

// Location of a bit difference between computed values and a checkpoint.
struct Difference {
  std::string tensor;    // "h.0/attn.qkv.weight"
  std::string what;      // "weights", "mean", "mean square"
  uint64_t element = 0;  // within the tensor
  float recorded = 0;
  float computed = 0;
};
// "element 12 of h.0/attn.qkv.weight: weights 0.125 in the checkpoint, 0.25 computed".
std::string DifferenceText(const Difference& difference);

// The first difference in the order of blocks, then of weights, m, v (where the optimizer keeps
// them). None: the same bits. Errors: those of CheckpointReader::ReadRange.
absl::StatusOr<std::optional<Difference>> FirstDifference(const CheckpointReader& checkpoint,
                                                          const BlockTable& blocks,
                                                          const SegmentTable& table,
                                                          Reexecution& computed);

}  // namespace tug

#endif  // TUG_LAB_RECORDED_CHECKPOINT_VALUES_H_
