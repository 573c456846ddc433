#include "model/memory.h"

#include "model/activations.h"
#include "model/layout.h"

namespace tug {

uint64_t PredictActivationBytes(const ModelConfig& config, uint32_t symbols, uint32_t micro_batch) {
  return Activations::SizeBytes(GptShapeOf(config, symbols), micro_batch);
}

uint64_t PredictWorkerBytes(const ModelConfig& config, uint32_t symbols, uint32_t micro_batch,
                            uint32_t virtual_workers) {
  const uint64_t parameters = ElementCount(GptLayout(config, symbols));
  return sizeof(float) * parameters * (1 + virtual_workers) +
         PredictActivationBytes(config, symbols, micro_batch) + kProcessBytes;
}

}  // namespace tug
