#ifndef TUG_COORDINATOR_JOB_BLOCKS_H_
#define TUG_COORDINATOR_JOB_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/control.pb.h"

namespace tug {

// What a job exchanges, and the size of each segment it is cut into, in segment order.
struct BlockLayout {
  BlockTable blocks;
  std::vector<uint64_t> segment_bytes;
};

// Cuts blocks into the segments of a job. Pure. Errors: INVALID_ARGUMENT, for those of
// SegmentTable::Create and for fewer segments than the job has lanes.
absl::StatusOr<BlockLayout> LayOut(const BlockTable& blocks, const JobConfig& config);

// Where a job's blocks come from: they are there from the start (our own model, a restored
// checkpoint), or the first worker declares them (model.external) and the others must declare the
// same. Not thread-safe.
class JobBlocks {
 public:
  // `initial`: no blocks = not known yet. `config` outlives this.
  JobBlocks(const JobConfig& config, BlockLayout initial);
  JobBlocks(const JobBlocks&) = delete;
  JobBlocks& operator=(const JobBlocks&) = delete;

  // A node joins with what it declares; takes the first declaration. Repeats change nothing.
  // Errors, and then nothing is taken: FAILED_PRECONDITION (declares where the job has a model of
  // its own, or the other way round; declares other blocks: names the first that differs),
  // INVALID_ARGUMENT (CheckDeclaredBlocks, LayOut).
  absl::Status Admit(const RegisterRequest& request);
  // Forgets what a worker declared: none is left that did.
  void ForgetDeclared();

  const BlockLayout& layout() const { return layout_; }

 private:
  const JobConfig& config_;
  BlockLayout layout_;
  bool known_;             // layout_ is the job's
  bool declared_ = false;  // by a worker
};

}  // namespace tug

#endif  // TUG_COORDINATOR_JOB_BLOCKS_H_
