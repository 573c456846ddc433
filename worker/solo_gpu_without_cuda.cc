#include "kernels/device.h"
#include "worker/solo_gpu.h"

namespace tug {

absl::StatusOr<std::unique_ptr<SoloDevice>> NewSoloGpu(int /*gpu*/, const SoloDeviceOptions&) {
  return absl::UnimplementedError(kernels::cuda::CheckGpu().message());
}

}  // namespace tug
