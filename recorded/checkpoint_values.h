#ifndef TUG_RECORDED_CHECKPOINT_VALUES_H_
#define TUG_RECORDED_CHECKPOINT_VALUES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"
#include "exchange/segment_table.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"
#include "recorded/reexecution.h"

namespace tug {

// What lanes began with at `start_version` of a run (server/lane.h): the checkpoint of that version
// in its folder, or, for 0, the weights of train.init_from or random ones. Errors: NOT_FOUND: the
// checkpoint is not kept any more; those of CheckpointReader and WeightsSource.
absl::StatusOr<std::vector<SegmentValues>> StartValues(const std::string& run_dir,
                                                       uint64_t start_version,
                                                       const JobConfig& config,
                                                       const BlockTable& blocks,
                                                       const SegmentTable& table);

// Where what was computed differs from a checkpoint, bit for bit.
struct Difference {
  std::string tensor;    // "h.0/attn.qkv.weight", of its weights unless `what` says otherwise
  std::string what;      // "weights", "mean", "mean square"
  uint64_t element = 0;  // within the tensor
  float recorded = 0;
  float computed = 0;
};
// "element 12 of h.0.attn.weight: weights 0.125 in the checkpoint, 0.12500001 computed".
std::string DifferenceText(const Difference& difference);

// The first one, in the order of blocks, and of what the optimizer keeps: weights, m, v. None: the
// same bits. Errors: those of CheckpointReader::ReadRange.
absl::StatusOr<std::optional<Difference>> FirstDifference(const CheckpointReader& checkpoint,
                                                          const BlockTable& blocks,
                                                          const SegmentTable& table,
                                                          Reexecution& computed);

}  // namespace tug

#endif  // TUG_RECORDED_CHECKPOINT_VALUES_H_
