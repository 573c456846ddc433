#ifndef TUG_WORKER_EMBEDDING_RUNS_H_
#define TUG_WORKER_EMBEDDING_RUNS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "data/sampler.h"
#include "exchange/runs.h"
#include "proto/blocks.pb.h"

namespace tug {

// Which elements of the embedding block (wte [V, C], then wpe [T, C]: model/layout.h) training
// steps touch: the rows of their tokens (of padding too, whose gradient is zero), and all
// positions. Not for a block that a head is tied to: that touches all of wte. Owned by one thread.
class EmbeddingRuns {
 public:
  // REQUIRES: `sampler` outlives it; `embedding` has those two tensors.
  EmbeddingRuns(const BlockSpec& embedding, const Sampler& sampler);

  // Of the samples that some virtual workers read at `step`.
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

#endif  // TUG_WORKER_EMBEDDING_RUNS_H_
