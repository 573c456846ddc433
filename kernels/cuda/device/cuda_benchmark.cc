// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device/cuda_benchmark.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace tug::kernels::cuda {
namespace {

#if TUG_CUDA_EMULATED
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

constexpr int kRuns = 5;
constexpr absl::Duration kRunTime = absl::Milliseconds(20);

std::vector<float> SomeFloats(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(i % 1999 - 999) * 1e-3f;
  return values;
}

}  // namespace

CudaBenchmark::CudaBenchmark(Stream stream, Event begin, Event end)
    : stream_(std::move(stream)), begin_(std::move(begin)), end_(std::move(end)) {}

absl::StatusOr<CudaBenchmark> CudaBenchmark::Create() {
  RETURN_IF_ERROR(CheckGpu());
  ASSIGN_OR_RETURN(const DeviceFacts facts, GetDeviceFacts());
  std::cout << facts.name << ", " << facts.multiprocessors << " multiprocessors, peak "
            << absl::StrFormat("%.0f GB/s\n", facts.peak_bytes_per_second * 1e-9);
  ASSIGN_OR_RETURN(Stream stream, Stream::Create());
  ASSIGN_OR_RETURN(Event begin, Event::Create(EventUse::kTime));
  ASSIGN_OR_RETURN(Event end, Event::Create(EventUse::kTime));
  return CudaBenchmark(std::move(stream), std::move(begin), std::move(end));
}

int64_t CudaBenchmark::Size(int64_t gpu, int64_t emulated) { return kEmulated ? emulated : gpu; }

absl::StatusOr<void*> CudaBenchmark::Zeros(int64_t bytes) {
  ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::Create(static_cast<size_t>(bytes)));
  void* const data = buffer.data();
  memory_.push_back(std::move(buffer));
  RETURN_IF_ERROR(FillZeroAsync(data, static_cast<size_t>(bytes), stream_));
  return data;
}

absl::StatusOr<float*> CudaBenchmark::Floats(int64_t n) {
  const auto values = SomeFloats(n);
  const size_t bytes = values.size() * sizeof(float);
  ASSIGN_OR_RETURN(void* const data, Zeros(static_cast<int64_t>(bytes)));
  RETURN_IF_ERROR(CopyToDeviceAsync(data, values.data(), bytes, stream_));
  RETURN_IF_ERROR(stream_.Synchronize());
  return static_cast<float*>(data);
}

absl::StatusOr<Bf16*> CudaBenchmark::Bf16s(int64_t n) {
  const auto wide = SomeFloats(n);
  std::vector<Bf16> values(wide.size());
  Bf16FromFloat(wide.data(), values.data(), n);
  const size_t bytes = values.size() * sizeof(Bf16);
  ASSIGN_OR_RETURN(void* const data, Zeros(static_cast<int64_t>(bytes)));
  RETURN_IF_ERROR(CopyToDeviceAsync(data, values.data(), bytes, stream_));
  RETURN_IF_ERROR(stream_.Synchronize());
  return static_cast<Bf16*>(data);
}

absl::StatusOr<absl::Duration> CudaBenchmark::Time(
    const std::function<absl::Status()>& queue) const {
  const auto time_of = [&](int64_t calls) -> absl::StatusOr<absl::Duration> {
    RETURN_IF_ERROR(begin_.Record(stream_));
    for (int64_t i = 0; i < calls; ++i) RETURN_IF_ERROR(queue());
    RETURN_IF_ERROR(end_.Record(stream_));
    RETURN_IF_ERROR(end_.Synchronize());
    ASSIGN_OR_RETURN(const absl::Duration all, TimeBetween(begin_, end_));
    return std::max(all / calls, absl::Nanoseconds(1));
  };
  ASSIGN_OR_RETURN(absl::Duration best, time_of(1));
  if (kEmulated) return best;
  ASSIGN_OR_RETURN(best, time_of(3));
  const int64_t calls = std::max<int64_t>(1, kRunTime / best);
  for (int run = 0; run < kRuns; ++run) {
    ASSIGN_OR_RETURN(const absl::Duration time, time_of(calls));
    best = std::min(best, time);
  }
  return best;
}

absl::Status CudaBenchmark::Run(absl::string_view name, absl::string_view unit, double amount,
                                double& first, const std::function<absl::Status()>& queue) {
  ASSIGN_OR_RETURN(const absl::Duration time, Time(queue));
  const double rate = amount / absl::ToDoubleSeconds(time);
  if (first == 0) first = rate;
  std::cout << absl::StreamFormat("%-48s %10.1f us %9.1f %s %6.1f%%\n", name,
                                  absl::ToDoubleMicroseconds(time), rate, unit, 100 * rate / first);
  return absl::OkStatus();
}

absl::Status CudaBenchmark::Bytes(absl::string_view name, double bytes,
                                  const std::function<absl::Status()>& queue) {
  return Run(name, "GB/s   ", bytes * 1e-9, copy_, queue);
}

absl::Status CudaBenchmark::Products(absl::string_view name, double products,
                                     const std::function<absl::Status()>& queue) {
  return Run(name, "TFLOP/s", 2 * products * 1e-12, product_, queue);
}

int RunCudaBenchmark(const std::function<absl::Status(CudaBenchmark&)>& run) {
  if (const absl::Status gpu = CheckGpu(); absl::IsUnavailable(gpu)) {
    std::cout << "skipped: " << gpu.message() << std::endl;
    return 0;
  }
  auto benchmark = CudaBenchmark::Create();
  const absl::Status status = benchmark.ok() ? run(*benchmark) : benchmark.status();
  if (status.ok()) return 0;
  std::cerr << status << std::endl;
  return 1;
}

}  // namespace tug::kernels::cuda
