#include "model/cuda_device.h"

namespace tug {

absl::StatusOr<std::unique_ptr<CudaDevice>> NewCudaDevice(int) { return kernels::cuda::CheckGpu(); }

}  // namespace tug
