// SPDX-License-Identifier: Apache-2.0
#include "model/backend/cuda_device.h"

namespace tug {

absl::StatusOr<std::unique_ptr<CudaDevice>> NewCudaDevice(int, GraphUse) {
  return kernels::cuda::CheckGpu();
}

}  // namespace tug
