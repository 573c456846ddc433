#ifndef TUG_WORKER_EMBEDDING_RUNS_H_
#define TUG_WORKER_EMBEDDING_RUNS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "data/sampler.h"
#include "exchange/runs.h"
#include "proto/job.pb.h"

namespace tug {

// Which elements of the embedding block (wte [V, C], then wpe [T, C]: model/layout.h) training
// steps touch: the rows of their tokens, and all positions. For an untied head only: a tied one
// touches all of wte. Owned by one thread.
class EmbeddingRuns {
 public:
  // REQUIRES: `sampler` outlives it.
  EmbeddingRuns(const ModelConfig& model, uint64_t block_elements, const Sampler& sampler);

  // Of the samples that some virtual workers read at `step`.
  ElementRuns Of(uint64_t step, std::span<const uint32_t> virtual_workers);

 private:
  const uint64_t width_;      // C
  const uint64_t wpe_begin_;  // V * C
  const uint64_t end_;
  const size_t share_tokens_;  // of a virtual worker and step
  const Sampler& sampler_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> targets_;  // not used, but comes with the tokens
};

}  // namespace tug

#endif  // TUG_WORKER_EMBEDDING_RUNS_H_
