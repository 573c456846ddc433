// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_GRADIENTS_EMBEDDING_RUNS_H_
#define TUG_WORKER_GRADIENTS_EMBEDDING_RUNS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "blocks/runs.h"
#include "data/sampler.h"
#include "proto/blocks.pb.h"

namespace tug {

// Elements of the embedding block (wte [V, C], then wpe [T, C]: model/layout.h) that training steps
// touch: the rows of their tokens (padding included, whose gradient is zero), and all positions.
// Not for a block with a tied head, which touches all of wte. Owned by one thread.
class EmbeddingRuns {
 public:
  // REQUIRES: `sampler` outlives it; `embedding` has those two tensors.
  EmbeddingRuns(const BlockSpec& embedding, const Sampler& sampler);

  // Elements that the samples of these virtual workers touch at `step`.
  ElementRuns Of(uint64_t step, std::span<const uint32_t> virtual_workers);

 private:
  const uint64_t width_;      // C
  const uint64_t wpe_begin_;  // V * C
  const uint64_t end_;
  const Sampler& sampler_;
  SampleBatch batch_;
  std::vector<int32_t> tokens_;
};

}  // namespace tug

#endif  // TUG_WORKER_GRADIENTS_EMBEDDING_RUNS_H_
