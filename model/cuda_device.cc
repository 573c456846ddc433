#include "model/cuda_device.h"

#include <utility>

#include "base/status_macros.h"
#include "model/cuda_backend.h"

namespace tug {
namespace {

using kernels::cuda::Stream;

class Device final : public CudaDevice {
 public:
  Device(int number, Stream stream)
      : number_(number), stream_(std::make_shared<const Stream>(std::move(stream))) {}

  absl::StatusOr<std::unique_ptr<Backend<float>>> NewFp32Backend() override {
    return CudaBackend<float>::Create(number_, stream_);
  }
  absl::StatusOr<std::unique_ptr<Backend<kernels::Bf16>>> NewBf16Backend() override {
    return CudaBackend<kernels::Bf16>::Create(number_, stream_);
  }
  const Stream& compute_stream() const override { return *stream_; }

 private:
  const int number_;
  const std::shared_ptr<const Stream> stream_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> NewCudaDevice(int device) {
  RETURN_IF_ERROR(kernels::cuda::UseDevice(device));
  RETURN_IF_ERROR(kernels::cuda::CheckGpu());
  ASSIGN_OR_RETURN(Stream stream, Stream::Create());
  return std::make_unique<Device>(device, std::move(stream));
}

}  // namespace tug
