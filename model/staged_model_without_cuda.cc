#include "kernels/device.h"
#include "model/staged_model.h"

namespace tug {

absl::StatusOr<GpuModel> NewStagedModel(int, const GpuModelOptions&, std::unique_ptr<GpuPeers>) {
  return absl::UnimplementedError(kernels::cuda::CheckGpu().message());
}

}  // namespace tug
