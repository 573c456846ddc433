#ifndef TUG_KERNELS_CUDA_BENCHMARK_H_
#define TUG_KERNELS_CUDA_BENCHMARK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kernels/bf16.h"
#include "kernels/device.h"

namespace tug::kernels::cuda {

// Times what is queued on the GPU, and prints a line for each: what it achieves, and what part that
// is of the fastest of its kind in the same run (a copy; a product of large matrices). Emulated, it
// only shows that everything runs. Not thread-safe.
class CudaBenchmark {
 public:
  // Errors: those of kernels/device.h.
  static absl::StatusOr<CudaBenchmark> Create();

  const Stream& stream() const { return stream_; }
  // `gpu`, or a small number emulated: elements, rows.
  static int64_t Size(int64_t gpu, int64_t emulated);

  // Device memory of n elements, values in (-1, 1). It lives as long as the benchmark.
  absl::StatusOr<float*> Floats(int64_t n);
  absl::StatusOr<Bf16*> Bf16s(int64_t n);
  // The same, `bytes` of zeros.
  absl::StatusOr<void*> Zeros(int64_t bytes);

  // Times `queue`, which queues work on the stream that reads and writes so many bytes of device
  // memory, or multiplies and adds as many numbers as `products` says (half of the FLOPs).
  // The first of either kind is what others are compared with.
  absl::Status Bytes(absl::string_view name, double bytes,
                     const std::function<absl::Status()>& queue);
  absl::Status Products(absl::string_view name, double products,
                        const std::function<absl::Status()>& queue);
  // Of that first one, in bytes and FLOPs a second; 0 before it.
  double first_bytes_per_second() const { return copy_ * 1e9; }
  double first_flops_per_second() const { return product_ * 1e12; }

 private:
  CudaBenchmark(Stream stream, Event begin, Event end);

  // Of one call, the fastest of some runs of many.
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

// What main() of a benchmark returns: 0, "skipped: ..." printed, where there is no GPU.
int RunCudaBenchmark(const std::function<absl::Status(CudaBenchmark&)>& run);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_BENCHMARK_H_
