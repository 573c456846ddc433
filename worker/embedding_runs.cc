#include "worker/embedding_runs.h"

namespace tug {

EmbeddingRuns::EmbeddingRuns(const ModelConfig& model, uint64_t block_elements,
                             const Sampler& sampler)
    : width_(model.width()),
      wpe_begin_(block_elements - uint64_t{model.context()} * model.width()),
      end_(block_elements),
      share_tokens_(size_t{sampler.share()} * model.context()),
      sampler_(sampler) {}

ElementRuns EmbeddingRuns::Of(uint64_t step, std::span<const uint32_t> virtual_workers) {
  tokens_.resize(share_tokens_ * virtual_workers.size());
  targets_.resize(share_tokens_);
  for (size_t i = 0; i < virtual_workers.size(); ++i) {
    sampler_.FillBatch(step, virtual_workers[i], 0, sampler_.share(),
                       std::span(tokens_).subspan(i * share_tokens_, share_tokens_), targets_);
  }
  const ElementRun positions = {static_cast<uint32_t>(wpe_begin_), static_cast<uint32_t>(end_)};
  return Merge(RunsOfRows(tokens_, width_, 0), {&positions, 1});
}

}  // namespace tug
