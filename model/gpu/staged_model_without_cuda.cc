// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device/device.h"
#include "model/gpu/staged_model.h"

namespace tug {

absl::StatusOr<GpuModel> NewStagedModel(int, const GpuModelOptions&, std::unique_ptr<GpuPeers>) {
  return absl::UnimplementedError(kernels::cuda::CheckGpu().message());
}

}  // namespace tug
