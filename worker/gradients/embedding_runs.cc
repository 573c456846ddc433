// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/embedding_runs.h"

#include "base/check.h"

namespace tug {

EmbeddingRuns::EmbeddingRuns(const BlockSpec& embedding, const Sampler& sampler)
    : width_(embedding.tensors(0).shape(1)),
      wpe_begin_(embedding.tensors(0).shape(0) * width_),
      end_(wpe_begin_ + embedding.tensors(1).shape(0) * width_),
      sampler_(sampler) {
  TUG_CHECK_EQ(embedding.tensors_size(), 2);
}

ElementRuns EmbeddingRuns::Of(uint64_t step, std::span<const uint32_t> virtual_workers) {
  tokens_.clear();
  for (const uint32_t virtual_worker : virtual_workers) {
    sampler_.Fill(step, virtual_worker, 0, sampler_.share(), batch_);
    tokens_.insert(tokens_.end(), batch_.tokens.begin(), batch_.tokens.end());
  }
  const ElementRun positions = {static_cast<uint32_t>(wpe_begin_), static_cast<uint32_t>(end_)};
  return Merge(RunsOfRows(tokens_, width_, 0), {&positions, 1});
}

}  // namespace tug
