// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_DEVICE_CUDA_LANGUAGE_H_
#define TUG_KERNELS_CUDA_DEVICE_CUDA_LANGUAGE_H_

// The language of .cu files: CUDA C++ without the parts that kernels/emulation/cuda_emulation.h
// omits. nvcc compiles it for the GPU; with TUG_CUDA_EMULATED=1 a C++ compiler makes it run on the
// CPU, for tests (kernels/emulation/cuda_emulation_scheduler.h lists the faults this finds).
// Included by .cu files only. Kernels are in namespace tug::kernels::cuda.
//
//   __global__ void Scale(int64_t n, float factor, float* x) {
//     for (int64_t i = GlobalThread(); i < n; i += GridThreads()) x[i] *= factor;
//   }
//   ...
//   return Launch(Scale, {GridStrideBlocks(n, 256), 256, stream}, n, factor, x);

#if TUG_CUDA_EMULATED
#include <tuple>

#include "kernels/emulation/cuda_emulation.h"
#include "kernels/emulation/cuda_emulation_memory.h"
#include "kernels/emulation/cuda_emulation_streams.h"
#include "kernels/fields.h"
#else
#include <cuda_runtime.h>
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xFFFFFFFFu;

struct LaunchShape {
  dim3 grid;   // in blocks
  dim3 block;  // in threads, at most 1024
  const Stream& stream;
  size_t shared_bytes = 0;
};

// Queues kernel(arguments...) on the stream. Pointers among the arguments, or in structs among
// them, must be null or to device memory. Errors: those of kernels/cuda/device/device.h;
// INVALID_ARGUMENT (a shape that no GPU supports). A kernel's own faults are reported by a later
// call that waits for the stream; emulated, as INTERNAL, and immediately unless streams are late.
template <typename... Parameters, typename... Arguments>
absl::Status Launch(void (*kernel)(Parameters...), const LaunchShape& shape,
                    Arguments&&... arguments);

// Grid for a loop of stride GridThreads() over n elements: blocks of `threads` threads, as many as
// n needs but at most a few per multiprocessor of a large GPU. At least 1.
inline unsigned GridStrideBlocks(int64_t n, int threads) {
  constexpr int64_t kMost = 132 * 16;
  const int64_t blocks = (n + threads - 1) / threads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > kMost ? kMost : blocks);
}

// Index of this thread in a one-dimensional grid, and the number of threads in the grid.
__device__ __forceinline__ int64_t GlobalThread() {
  return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t GridThreads() { return int64_t{gridDim.x} * blockDim.x; }

// The block's shared memory, `shared_bytes` of the launch: a T (e.g. a struct of arrays), or the
// first of an array of T. Uninitialized when the block begins; 128-byte aligned.
template <typename T>
__device__ __forceinline__ T* SharedMemory() {
  static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 128);
#if TUG_CUDA_EMULATED
  return static_cast<T*>(emulation::SharedBytes(sizeof(T)));
#else
  extern __shared__ __align__(128) unsigned char tug_shared_bytes[];
  return reinterpret_cast<T*>(tug_shared_bytes);
#endif
}

#if TUG_CUDA_EMULATED

// Whether a kernel argument, or a field of one, is valid on the device.
template <typename T>
bool IsUsable(const T& parameter) {
  if constexpr (std::is_pointer_v<T>) {
    return parameter == nullptr || emulation::IsDeviceMemory(parameter);
  } else if constexpr (std::is_class_v<T>) {
    return WithFields(parameter, [](const auto&... fields) { return (IsUsable(fields) && ...); });
  }
  return true;
}

template <typename... Parameters, typename... Arguments>
absl::Status Launch(void (*kernel)(Parameters...), const LaunchShape& shape,
                    Arguments&&... arguments) {
  const emulation::GridShape grid = {{shape.grid.x, shape.grid.y, shape.grid.z},
                                     {shape.block.x, shape.block.y, shape.block.z},
                                     shape.shared_bytes};
  const absl::Status refused = emulation::CheckGrid(grid);
  if (!refused.ok()) return refused;
  const std::tuple<Parameters...> parameters(static_cast<Parameters>(arguments)...);
  const auto check = [](const auto&... each) {
    if ((IsUsable(each) && ...)) return absl::OkStatus();
    return absl::InternalError("a kernel argument points to memory that is not device memory");
  };
  const absl::Status given = std::apply(check, parameters);
  if (!given.ok()) return given;
  return emulation::Enqueue(shape.stream.handle(), [=, blocks = shape.grid, threads = shape.block] {
    const absl::Status still_there = std::apply(check, parameters);
    if (!still_there.ok()) return still_there;
    gridDim = blocks;
    blockDim = threads;
    return emulation::RunGrid(
        grid, [&] { std::apply(kernel, parameters); },
        [](const emulation::Index3& thread, const emulation::Index3& block) {
          threadIdx = {thread.x, thread.y, thread.z};
          blockIdx = {block.x, block.y, block.z};
        });
  });
}

#else

template <typename... Parameters, typename... Arguments>
absl::Status Launch(void (*kernel)(Parameters...), const LaunchShape& shape,
                    Arguments&&... arguments) {
  constexpr size_t kWithoutAsking = 48 << 10;
  if (shape.shared_bytes > kWithoutAsking) {
    const cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   static_cast<int>(shape.shared_bytes));
    if (error != cudaSuccess) return CudaStatus(error, "shared memory of a kernel");
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = static_cast<cudaStream_t>(shape.stream.handle());
  return CudaStatus(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...),
                    "launch");
}

#endif  // TUG_CUDA_EMULATED

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_DEVICE_CUDA_LANGUAGE_H_
