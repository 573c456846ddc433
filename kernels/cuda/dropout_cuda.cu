// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dropout_cuda.h"

#include "base/check.h"
#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/vector_cuda.h"
#include "kernels/cuda/dropout_mask_cuda.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxSampleBlocks = 65535;

// element % width. A 64-bit division would cost more than everything else here.
__device__ __forceinline__ int64_t Column(int64_t element, int64_t width) {
  if (element <= UINT32_MAX && width <= UINT32_MAX) {
    return static_cast<uint32_t>(element) % static_cast<uint32_t>(width);
  }
  return element % width;
}

// Blocks are along samples in y and over a sample's elements in x, one vector per thread. A warp's
// lanes loop together, as KeptBits requires. kWhole: every vector is complete and in one row.
// `bias`: that of `a`, a separate parameter since nvcc ignores __restrict__ on members.
template <typename T, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    DropoutAddKernel(DropoutAddArgs<T> a, DropoutMask mask, const float* __restrict__ bias) {
  constexpr int kCount = kVector<T>;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t sample = blockIdx.y; sample < a.samples; sample += gridDim.y) {
    const int64_t at = sample * a.elements_per_sample;
    for (int64_t first = (GlobalThread() - lane) * kCount; first < a.elements_per_sample;
         first += GridThreads() * kCount) {
      const int64_t element = first + lane * kCount;
      const int64_t left = a.elements_per_sample - element;
      float v[kCount];
      LoadVector<kWhole>(a.x + at + element, left, v);
      if (bias != nullptr) {
        float shift[kCount] = {};
        int64_t column = Column(element, a.width);
        if constexpr (kWhole) {
          LoadVector<true>(bias + column, left, shift);
        } else {
          for (int i = 0; i < kCount && i < left; ++i) {
            shift[i] = bias[column];
            if (++column == a.width) column = 0;
          }
        }
#pragma unroll
        for (int i = 0; i < kCount; ++i) v[i] += shift[i];
      }
      if (mask.threshold != 0) {
        ApplyDropout(mask, KeptBits<kCount>(mask, static_cast<uint32_t>(sample), element), v);
      }
      if (a.residual != nullptr) {
        float past[kCount];
        LoadVector<kWhole>(a.residual + at + element, left, past);
#pragma unroll
        for (int i = 0; i < kCount; ++i) v[i] = past[i] + v[i];
      }
      StoreVector<kWhole>(v, left, a.y + at + element);
    }
  }
}

}  // namespace

template <typename T>
absl::Status DropoutAdd(const DropoutAddArgs<T>& a, const Stream& stream) {
  TUG_CHECK_LE(a.elements_per_sample, kMaxDropoutElements);
  if (a.samples == 0 || a.elements_per_sample == 0) return absl::OkStatus();
  TUG_CHECK(a.bias == nullptr || a.elements_per_sample % a.width == 0);
  const bool whole = a.elements_per_sample % kVector<T> == 0 &&
                     (a.bias == nullptr || a.width % kVector<T> == 0) &&
                     AtVectors(a.x, a.bias, a.residual, a.y);
  const int64_t vectors = (a.elements_per_sample + kVector<T> - 1) / kVector<T>;
  const dim3 grid(
      GridStrideBlocks(vectors, kThreads),
      static_cast<unsigned>(a.samples < kMaxSampleBlocks ? a.samples : kMaxSampleBlocks));
  const auto kernel = whole ? &DropoutAddKernel<T, true> : &DropoutAddKernel<T, false>;
  return Launch(kernel, {grid, kThreads, stream}, a, MakeDropoutMask(a.key, a.p), a.bias);
}

template absl::Status DropoutAdd(const DropoutAddArgs<float>&, const Stream&);
template absl::Status DropoutAdd(const DropoutAddArgs<Bf16>&, const Stream&);

}  // namespace tug::kernels::cuda
