// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device/device.h"
#include "worker/solo/solo_gpu.h"

namespace tug {

absl::StatusOr<std::unique_ptr<SoloDevice>> NewSoloGpu(int /*gpu*/, const SoloDeviceOptions&) {
  return absl::UnimplementedError(kernels::cuda::CheckGpu().message());
}

}  // namespace tug
