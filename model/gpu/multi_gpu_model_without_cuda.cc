// SPDX-License-Identifier: Apache-2.0
#include "model/gpu/multi_gpu_model.h"
#include "model/gpu/staged_model.h"

namespace tug {

absl::StatusOr<GpuModel> NewMultiGpuModel(const std::vector<int>& gpus,
                                          const GpuModelOptions& options,
                                          std::shared_ptr<GpuGroup>) {
  return NewStagedModel(gpus.front(), options);
}

}  // namespace tug
