// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/benchmark/cuda_peaks.h"

#include <cstdint>
#include <type_traits>

#include "base/status_macros.h"

namespace tug::kernels::cuda {

absl::Status TimeCopy(CudaBenchmark& benchmark) {
  const int64_t bytes = CudaBenchmark::Size(512 << 20, 1 << 10);
  ASSIGN_OR_RETURN(void* const from, benchmark.Zeros(bytes));
  ASSIGN_OR_RETURN(void* const to, benchmark.Zeros(bytes));
  return benchmark.Bytes("copy", 2.0 * static_cast<double>(bytes), [&] {
    return CopyOnDeviceAsync(to, from, static_cast<size_t>(bytes), benchmark.stream());
  });
}

template <typename T>
absl::Status TimeSquareProduct(CudaBenchmark& benchmark, MatMulHandle& handle) {
  constexpr bool kNarrow = std::is_same_v<T, Bf16>;
  const int64_t size = CudaBenchmark::Size(8192, 32);
  const auto elements = [&]() -> absl::StatusOr<T*> {
    if constexpr (kNarrow) {
      return benchmark.Bf16s(size * size);
    } else {
      return benchmark.Floats(size * size);
    }
  };
  ASSIGN_OR_RETURN(const T* const x, elements());
  ASSIGN_OR_RETURN(T* const y, elements());
  const auto n = static_cast<double>(size);
  return benchmark.Products(
      kNarrow ? "square product, BF16" : "square product, FP32", n * n * n, [&] {
        return MatMul<T, T>(handle, {size, size, size, {x, size}, {x, size}, y, size},
                            benchmark.stream());
      });
}

template absl::Status TimeSquareProduct<float>(CudaBenchmark&, MatMulHandle&);
template absl::Status TimeSquareProduct<Bf16>(CudaBenchmark&, MatMulHandle&);

}  // namespace tug::kernels::cuda
