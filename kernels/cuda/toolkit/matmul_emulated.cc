// SPDX-License-Identifier: Apache-2.0
// Replaces matmul_cuda.cc in tests: the CPU's product on emulated device memory. Products that
// cuBLASLt cannot fuse are not fused here either.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "kernels/activation.h"
#include "kernels/cuda/toolkit/matmul_cuda-inl.h"
#include "kernels/cuda/toolkit/matmul_cuda.h"
#include "kernels/emulation/cuda_emulation_memory.h"
#include "kernels/emulation/cuda_emulation_streams.h"

namespace tug::kernels::cuda {

struct MatMulHandle::State {
  DeviceBuffer bias;
};

void MatMulHandle::Destroy::operator()(State* state) const { delete state; }
void* MatMulHandle::bias_scratch() const { return state_->bias.data(); }

absl::StatusOr<MatMulHandle> MatMulHandle::Create() {
  ASSIGN_OR_RETURN(DeviceBuffer bias, DeviceBuffer::Create(kBiasBytes));
  return MatMulHandle(new State{std::move(bias)});
}

namespace {

void Widen(const float* from, float* to, int64_t n) { std::copy_n(from, n, to); }
void Widen(const Bf16* from, float* to, int64_t n) { FloatFromBf16(from, to, n); }
void Narrow(const float* from, float* to, int64_t n) { std::copy_n(from, n, to); }
void Narrow(const float* from, Bf16* to, int64_t n) { Bf16FromFloat(from, to, n); }

// Returns a matrix [rows][columns] of stride `stride` as contiguous floats.
template <typename T>
std::vector<float> Widened(int64_t rows, int64_t columns, const T* from, int64_t stride) {
  std::vector<float> to(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) Widen(from + i * stride, to.data() + i * columns, columns);
  return to;
}

template <typename T>
void Store(const std::vector<float>& from, int64_t rows, int64_t columns, T* to, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i) Narrow(from.data() + i * columns, to + i * stride, columns);
}

template <typename T>
absl::Status CheckMatrix(const char* name, const T* matrix, int64_t rows, int64_t columns,
                         int64_t stride) {
  TUG_CHECK_GE(stride, columns) << name;
  if (rows == 0 || columns == 0) return absl::OkStatus();
  const auto bytes = static_cast<size_t>((rows - 1) * stride + columns) * sizeof(T);
  if (emulation::IsDeviceRange(matrix, bytes)) return absl::OkStatus();
  return absl::InternalError(std::string("a product's ") + name +
                             " is not entirely in device memory");
}

// The new value of C, [m][n], in FP32.
template <typename T, typename C>
absl::StatusOr<std::vector<float>> Multiply(const MatMulArgs<T, C>& args) {
  const auto& [m, n, k, a, b, c, ldc, accumulate] = args;
  const int64_t a_rows = a.op == Transpose::kYes ? k : m, a_columns = m + k - a_rows;
  const int64_t b_rows = b.op == Transpose::kYes ? n : k, b_columns = n + k - b_rows;
  RETURN_IF_ERROR(CheckMatrix("A", a.data, a_rows, a_columns, a.stride));
  RETURN_IF_ERROR(CheckMatrix("B", b.data, b_rows, b_columns, b.stride));
  RETURN_IF_ERROR(CheckMatrix("C", c, m, n, ldc));
  const auto a_wide = Widened(a_rows, a_columns, a.data, a.stride);
  const auto b_wide = Widened(b_rows, b_columns, b.data, b.stride);
  auto sums = accumulate ? Widened(m, n, c, ldc) : std::vector<float>(static_cast<size_t>(m * n));
  MatMulInTask({.m = m,
                .n = n,
                .k = k,
                .a = {a_wide.data(), a_columns, a.op},
                .b = {b_wide.data(), b_columns, b.op},
                .c = sums.data(),
                .ldc = n,
                .accumulate = accumulate});
  return sums;
}

// REQUIRES: a shape that can be fused.
template <typename T, typename C>
absl::Status RunFused(const MatMulArgs<T, C>& args, const Epilogue<C>& epilogue) {
  const int64_t m = args.m, n = args.n, ldc = args.ldc;
  ASSIGN_OR_RETURN(auto sums, Multiply(args));
  if (epilogue.bias != nullptr) {
    RETURN_IF_ERROR(CheckMatrix("bias", epilogue.bias, 1, n, n));
    const auto bias = Widened(1, n, epilogue.bias, n);
    for (int64_t i = 0; i < m * n; ++i) sums[i] += bias[i % n];
  }
  if (epilogue.pre_gelu == nullptr) {
    Store(sums, m, n, args.c, ldc);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckMatrix("sum before GELU", epilogue.pre_gelu, m, n, ldc));
  Store(sums, m, n, epilogue.pre_gelu, ldc);
  std::vector<float> activated(sums.size());
  BiasActivationTile<float>(Activation::kGelu, m, n, n, /*bias=*/nullptr, sums.data(),
                            activated.data());
  Store(activated, m, n, args.c, ldc);
  return absl::OkStatus();
}

}  // namespace

template <typename T, typename C>
absl::Status MatMul(MatMulHandle&, const MatMulArgs<T, C>& args, const Stream& stream) {
  TUG_CHECK(args.m >= 0 && args.n >= 0 && args.k >= 0);
  return emulation::Enqueue(stream.handle(), [=]() -> absl::Status {
    const emulation::DeviceAccess access;
    ASSIGN_OR_RETURN(const auto sums, Multiply(args));
    Store(sums, args.m, args.n, args.c, args.ldc);
    return absl::OkStatus();
  });
}

template <typename T, typename C>
absl::Status FusedMatMul(MatMulHandle&, const MatMulArgs<T, C>& args, const Epilogue<C>& epilogue,
                         const Stream& stream) {
  TUG_CHECK(args.m >= 0 && args.n >= 0 && args.k >= 0 && !args.accumulate);
  if (args.m == 0 || args.n == 0) return absl::OkStatus();
  RETURN_IF_ERROR(CheckFusible(args, epilogue));
  return emulation::Enqueue(stream.handle(), [=] {
    const emulation::DeviceAccess access;
    return RunFused(args, epilogue);
  });
}

TUG_INSTANTIATE_MATMUL

}  // namespace tug::kernels::cuda
