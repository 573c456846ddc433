// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_JOB_BLOCKS_H_
#define TUG_BLOCKS_JOB_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/control.pb.h"

namespace tug {

// Blocks that a job exchanges, and the size of each of their segments, in segment order.
struct BlockLayout {
  BlockTable blocks;
  std::vector<uint64_t> segment_bytes;
};

// Cuts blocks into the segments of a job. Pure. Errors: INVALID_ARGUMENT (SegmentTable::Create
// fails, fewer segments than lanes, or comm.push_codec.blocks has a pattern that matches no block).
absl::StatusOr<BlockLayout> LayOut(const BlockTable& blocks, const JobConfig& config);

// A job's blocks. They are known from the start (tug's own model, a restored checkpoint), or the
// first worker declares them (model.external) and the others must declare the same. Not
// thread-safe.
class JobBlocks {
 public:
  // `initial`: without blocks if they are not known yet. `config` outlives this.
  JobBlocks(const JobConfig& config, BlockLayout initial);
  JobBlocks(const JobBlocks&) = delete;
  JobBlocks& operator=(const JobBlocks&) = delete;

  // Checks the blocks that a joining node declares, and adopts the first declaration. Repeats
  // change nothing. Errors, which leave the state unchanged: FAILED_PRECONDITION (declares blocks
  // although the job trains tug's model, or declares none with model.external; declares other
  // blocks: names the first that differs), INVALID_ARGUMENT (CheckDeclaredBlocks, LayOut).
  absl::Status Admit(const RegisterRequest& request);
  // Discards the blocks that a worker declared. Call when no worker that declared them is left.
  void ForgetDeclared();

  const BlockLayout& layout() const { return layout_; }

 private:
  const JobConfig& config_;
  BlockLayout layout_;
  bool known_;             // layout_ is final
  bool declared_ = false;  // a worker declared layout_
};

}  // namespace tug

#endif  // TUG_BLOCKS_JOB_BLOCKS_H_
