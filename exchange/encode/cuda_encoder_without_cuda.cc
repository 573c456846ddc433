// SPDX-License-Identifier: Apache-2.0
#include "exchange/encode/cuda_encoder.h"
#include "kernels/cuda/device/device.h"

namespace tug {

absl::StatusOr<std::unique_ptr<DeviceEncoder>> NewCudaEncoder(DeviceEncoderOptions) {
  return absl::UnimplementedError(kernels::cuda::CheckGpu().message());
}

}  // namespace tug
