#include "exchange/cuda_encoder.h"
#include "kernels/device.h"

namespace tug {

absl::StatusOr<std::unique_ptr<DeviceEncoder>> NewCudaEncoder(DeviceEncoderOptions) {
  return absl::UnimplementedError(kernels::cuda::CheckGpu().message());
}

}  // namespace tug
