// SPDX-License-Identifier: Apache-2.0
#include "plan/pipeline_parallel.h"

#include <algorithm>

#include "base/check.h"

namespace tug {

double BubbleFraction(uint32_t stages, uint64_t micro_batches) {
  TUG_CHECK(stages >= 1 && micro_batches >= 1);
  return static_cast<double>(stages - 1) / static_cast<double>(micro_batches);
}

double IdleShare(uint32_t stages, uint64_t micro_batches) {
  TUG_CHECK(stages >= 1 && micro_batches >= 1);
  return static_cast<double>(stages - 1) /
         static_cast<double>(PipelineTurns(stages, micro_batches));
}

uint64_t PipelineTurns(uint32_t stages, uint64_t micro_batches) {
  TUG_CHECK(stages >= 1 && micro_batches >= 1);
  return micro_batches + stages - 1;
}

uint64_t MicroBatchesHeld(uint32_t stages, uint64_t micro_batches) {
  return std::min<uint64_t>(stages, micro_batches);
}

double PipelineSeconds(const TransformerShape& shape, double samples, uint32_t stages,
                       uint64_t micro_batches, const LinkCost& link) {
  if (stages <= 1) return 0;
  const auto turns = static_cast<double>(PipelineTurns(stages, micro_batches) - 1);
  return 2 * turns * (link.alpha + LayerOutputBytes(shape, samples) * link.beta);
}

}  // namespace tug
