#include "kernels/dropout_cuda.h"

#include "base/check.h"
#include "kernels/cuda_language.h"
#include "kernels/dropout_mask_cuda.h"
#include "kernels/vector_cuda.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxSampleBlocks = 65535;

// element % width; a division of 64 bits costs more than all else here.
__device__ __forceinline__ int64_t Column(int64_t element, int64_t width) {
  if (element <= UINT32_MAX && width <= UINT32_MAX) {
    return static_cast<uint32_t>(element) % static_cast<uint32_t>(width);
  }
  return element % width;
}

// Blocks lie along samples (y) and over a sample's elements (x), a vector a thread. A warp goes on
// as a whole, as KeptBits wants it. kWhole: every vector is whole and in one row.
template <typename T, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    BiasDropoutAddKernel(int64_t samples, int64_t elements, int64_t width, const T* x,
                         const float* __restrict__ bias, const T* residual, DropoutMask mask,
                         T* y) {
  constexpr int kCount = kVector<T>;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t sample = blockIdx.y; sample < samples; sample += gridDim.y) {
    const int64_t at = sample * elements;
    for (int64_t first = (GlobalThread() - lane) * kCount; first < elements;
         first += GridThreads() * kCount) {
      const int64_t element = first + lane * kCount;
      const int64_t left = elements - element;
      float v[kCount];
      LoadVector<kWhole>(x + at + element, left, v);
      if (bias != nullptr) {
        float shift[kCount] = {};
        int64_t column = Column(element, width);
        if constexpr (kWhole) {
          LoadVector<true>(bias + column, left, shift);
        } else {
          for (int i = 0; i < kCount && i < left; ++i) {
            shift[i] = bias[column];
            if (++column == width) column = 0;
          }
        }
#pragma unroll
        for (int i = 0; i < kCount; ++i) v[i] += shift[i];
      }
      if (mask.threshold != 0) {
        ApplyDropout(mask, KeptBits<kCount>(mask, static_cast<uint32_t>(sample), element), v);
      }
      if (residual != nullptr) {
        float past[kCount];
        LoadVector<kWhole>(residual + at + element, left, past);
#pragma unroll
        for (int i = 0; i < kCount; ++i) v[i] = past[i] + v[i];
      }
      StoreVector<kWhole>(v, left, y + at + element);
    }
  }
}

}  // namespace

template <typename T>
absl::Status BiasDropoutAdd(int64_t samples, int64_t elements_per_sample, int64_t width, const T* x,
                            const float* bias, const T* residual, float p, const DropoutKey& key,
                            T* y, const Stream& stream) {
  TUG_CHECK_LE(elements_per_sample, kMaxDropoutElements);
  if (samples == 0 || elements_per_sample == 0) return absl::OkStatus();
  TUG_CHECK(bias == nullptr || elements_per_sample % width == 0);
  const DropoutMask mask = MakeDropoutMask(key, p);
  const bool whole = elements_per_sample % kVector<T> == 0 &&
                     (bias == nullptr || width % kVector<T> == 0) &&
                     AtVectors(x, bias, residual, y);
  const int64_t vectors = (elements_per_sample + kVector<T> - 1) / kVector<T>;
  const dim3 grid(GridStrideBlocks(vectors, kThreads),
                  static_cast<unsigned>(samples < kMaxSampleBlocks ? samples : kMaxSampleBlocks));
  const auto kernel = whole ? &BiasDropoutAddKernel<T, true> : &BiasDropoutAddKernel<T, false>;
  return Launch(kernel, {grid, kThreads, stream}, samples, elements_per_sample, width, x, bias,
                residual, mask, y);
}

template <typename T>
absl::Status DropoutAdd(int64_t samples, int64_t elements_per_sample, const T* x, const T* residual,
                        float p, const DropoutKey& key, T* y, const Stream& stream) {
  return BiasDropoutAdd<T>(samples, elements_per_sample, elements_per_sample, x, nullptr, residual,
                           p, key, y, stream);
}

template <typename T>
absl::Status DropoutBackward(int64_t samples, int64_t elements_per_sample, const T* dy, float p,
                             const DropoutKey& key, T* dx, const Stream& stream) {
  return DropoutAdd<T>(samples, elements_per_sample, dy, nullptr, p, key, dx, stream);
}

template absl::Status BiasDropoutAdd(int64_t, int64_t, int64_t, const float*, const float*,
                                     const float*, float, const DropoutKey&, float*, const Stream&);
template absl::Status DropoutAdd(int64_t, int64_t, const float*, const float*, float,
                                 const DropoutKey&, float*, const Stream&);
template absl::Status DropoutBackward(int64_t, int64_t, const float*, float, const DropoutKey&,
                                      float*, const Stream&);
template absl::Status BiasDropoutAdd(int64_t, int64_t, int64_t, const Bf16*, const float*,
                                     const Bf16*, float, const DropoutKey&, Bf16*, const Stream&);
template absl::Status DropoutAdd(int64_t, int64_t, const Bf16*, const Bf16*, float,
                                 const DropoutKey&, Bf16*, const Stream&);
template absl::Status DropoutBackward(int64_t, int64_t, const Bf16*, float, const DropoutKey&,
                                      Bf16*, const Stream&);

}  // namespace tug::kernels::cuda
