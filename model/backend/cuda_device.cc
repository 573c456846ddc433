// SPDX-License-Identifier: Apache-2.0
#include "model/backend/cuda_device.h"

#include <utility>

#include "base/status_macros.h"
#include "model/backend/cuda_backend.h"
#include "model/backend/device_queue.h"

namespace tug {
namespace {

using kernels::cuda::Stream;

class Device final : public CudaDevice {
 public:
  Device(int number, GraphUse graphs, Stream stream)
      : queue_(std::make_shared<DeviceQueue>(
            DeviceQueue{.device = number, .graphs = graphs, .stream = std::move(stream)})) {}

  absl::StatusOr<std::unique_ptr<Backend<float>>> NewFp32Backend() override {
    return CudaBackend<float>::Create(queue_);
  }
  absl::StatusOr<std::unique_ptr<Backend<kernels::Bf16>>> NewBf16Backend() override {
    return CudaBackend<kernels::Bf16>::Create(queue_);
  }
  const Stream& compute_stream() const override { return queue_->stream; }
  uint64_t graph_launches() const override { return queue_->graph_launches; }

 private:
  const std::shared_ptr<DeviceQueue> queue_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> NewCudaDevice(int device, GraphUse graphs) {
  RETURN_IF_ERROR(kernels::cuda::UseDevice(device));
  RETURN_IF_ERROR(kernels::cuda::CheckGpu());
  ASSIGN_OR_RETURN(Stream stream, Stream::Create());
  return std::make_unique<Device>(device, graphs, std::move(stream));
}

}  // namespace tug
