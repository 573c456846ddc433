// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_DEVICE_CUDA_BENCHMARK_H_
#define TUG_KERNELS_CUDA_DEVICE_CUDA_BENCHMARK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

// Times work queued on the GPU and prints a line for each: the rate, and its share of that of the
// first of its kind in the same run (a copy; a product of large matrices). Emulated, it only shows
// that everything runs. Not thread-safe.
class CudaBenchmark {
 public:
  // Errors: those of kernels/cuda/device/device.h.
  static absl::StatusOr<CudaBenchmark> Create();

  const Stream& stream() const { return stream_; }
  // Size to use, in elements or rows: `gpu`, or the small number `emulated` if emulated.
  static int64_t Size(int64_t gpu, int64_t emulated);

  // Device memory of n elements, values in (-1, 1). Lives as long as the benchmark.
  absl::StatusOr<float*> Floats(int64_t n);
  absl::StatusOr<Bf16*> Bf16s(int64_t n);
  // Device memory of `bytes` zeros. Lives as long as the benchmark.
  absl::StatusOr<void*> Zeros(int64_t bytes);

  // Times the work that `queue` puts on the stream. The work reads and writes `bytes` bytes of
  // device memory, or multiplies and adds `products` times (half of the FLOPs). The first call of
  // each kind is the reference for later ones.
  absl::Status Bytes(absl::string_view name, double bytes,
                     const std::function<absl::Status()>& queue);
  absl::Status Products(absl::string_view name, double products,
                        const std::function<absl::Status()>& queue);
  // Rate of that first call, in bytes and FLOPs per second; 0 before it.
  double first_bytes_per_second() const { return copy_ * 1e9; }
  double first_flops_per_second() const { return product_ * 1e12; }

 private:
  CudaBenchmark(Stream stream, Event begin, Event end);

  // Time of one call: the minimum over several runs of many calls.
  absl::StatusOr<absl::Duration> Time(const std::function<absl::Status()>& queue) const;
  absl::Status Run(absl::string_view name, absl::string_view unit, double amount, double& first,
                   const std::function<absl::Status()>& queue);

  Stream stream_;
  Event begin_;
  Event end_;
  std::vector<DeviceBuffer> memory_;
  double copy_ = 0;     // GB/s
  double product_ = 0;  // TFLOP/s
};

// Return value for main() of a benchmark. Without a GPU it prints "skipped: ..." and returns 0.
int RunCudaBenchmark(const std::function<absl::Status(CudaBenchmark&)>& run);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_DEVICE_CUDA_BENCHMARK_H_
