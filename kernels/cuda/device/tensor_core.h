// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_DEVICE_TENSOR_CORE_H_
#define TUG_KERNELS_CUDA_DEVICE_TENSOR_CORE_H_

// Tensor cores (bf16 times bf16 into FP32), the loads that feed them, and asynchronous copies:
// sm_80 and later. Emulated, each lane holds the same elements as on a GPU. For .cu files.
// PTX ISA 9.0, sections "mma.m16n8k16", "ldmatrix", "cp.async".
//
// MultiplyAdd and LoadMatrices: all 32 lanes of a warp must call them together. Below, for lane l:
//   g = l / 4 (0 to 7), t = l % 4; of two elements in one register the first is the lower half.

#include "kernels/cuda/device/bf16_cuda.h"
#include "kernels/cuda/device/cuda_language.h"

#if TUG_CUDA_EMULATED
#include "kernels/emulation/tensor_core_emulation.h"
#endif

namespace tug::kernels::cuda {

// A, 16 rows x 16 columns of bf16 (m x k). x[0]: row g, columns 2t, 2t + 1; x[1]: row g + 8,
// columns 2t, 2t + 1; x[2]: row g, columns 2t + 8, 2t + 9; x[3]: row g + 8, columns 2t + 8, 2t + 9.
struct FragmentA {
  unsigned x[4];
};
// B, 16 rows x 8 columns of bf16 (k x n). x[0]: rows 2t, 2t + 1 of column g; x[1]: rows 2t + 8, 2t
// + 9 of column g.
struct FragmentB {
  unsigned x[2];
};
// C, 16 rows x 8 columns of float (m x n). x[0], x[1]: row g, columns 2t, 2t + 1; x[2], x[3]: row g
// + 8, columns 2t, 2t + 1. So C of two adjacent products, rounded by PackBf16, is an A.
struct FragmentC {
  float x[4];
};

// c += a b. Products are exact; sums are FP32, in an order and with a rounding specific to the GPU,
// but the same in every run.
__device__ __forceinline__ void MultiplyAdd(const FragmentA& a, const FragmentB& b, FragmentC& c) {
#if TUG_CUDA_EMULATED
  emulation::MultiplyAdd(a.x, b.x, c.x);
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
      : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[0]), "r"(b.x[1]));
#endif
}

// Packs two numbers, rounded to nearest, ties to even, into one register.
__device__ __forceinline__ unsigned PackBf16(float first, float second) {
#if TUG_CUDA_EMULATED
  return static_cast<unsigned>(Narrow<Bf16>(first)) | static_cast<unsigned>(Narrow<Bf16>(second))
                                                          << 16;
#else
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#endif
}

// ldmatrix: loads kMatrices (1, 2 or 4) matrices of 8 x 8 bf16 from shared memory. `row` of lanes
// 8i to 8i + 7 is the start of matrix i's rows of 16 bytes, each 16-byte aligned; `row` of other
// lanes is not read. x[i]: row g, columns 2t, 2t + 1 of matrix i; transposed: rows 2t, 2t + 1 of
// column g.
//   FragmentA of row-major [16][stride]:
//       LoadMatrices<4, false>(tile + l % 16 * stride + l / 16 * 8)
//   FragmentB of [n][k]-major [8][stride]:
//       LoadMatrices<2, false>(tile + l % 8 * stride + l / 8 % 2 * 8)
//   FragmentB of [k][n]-major [16][stride]:
//       LoadMatrices<2, true>(tile + l % 16 * stride)
// A stride of 8 elements more than a multiple of 64 puts the rows of a matrix into different banks.
template <int kMatrices, bool kTransposed>
__device__ __forceinline__ void LoadMatrices(const Bf16* row, unsigned* x) {
  static_assert(kMatrices == 1 || kMatrices == 2 || kMatrices == 4);
#if TUG_CUDA_EMULATED
  emulation::LoadMatrices(kMatrices, kTransposed, row, x);
#else
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kMatrices == 4 && kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
  } else if constexpr (kMatrices == 4) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
  } else if constexpr (kMatrices == 2 && kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(x[0]), "=r"(x[1])
                 : "r"(at)
                 : "memory");
  } else if constexpr (kMatrices == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(x[0]), "=r"(x[1])
                 : "r"(at)
                 : "memory");
  } else if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(x[0])
                 : "r"(at)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(x[0])
                 : "r"(at)
                 : "memory");
  }
#endif
}

// cp.async: starts to copy 16 bytes from device memory to shared memory, both 16-byte aligned. If
// `bytes` is below 16 the rest becomes zeros (0: nothing is read). This thread sees the data after
// WaitForCopies, other threads after a barrier that follows it.
__device__ __forceinline__ void CopyAsync16(void* shared, const void* device, int bytes = 16) {
#if TUG_CUDA_EMULATED
  emulation::BeginCopy(shared, device, bytes);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "l"(device),
                 "r"(bytes)
               : "memory");
#endif
}

// Groups the copies that this thread has started since the last CommitCopies.
__device__ __forceinline__ void CommitCopies() {
#if TUG_CUDA_EMULATED
  emulation::CommitCopies();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for this thread's groups, except the last kStillGoing.
template <int kStillGoing>
__device__ __forceinline__ void WaitForCopies() {
#if TUG_CUDA_EMULATED
  emulation::WaitForCopies(kStillGoing);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(kStillGoing) : "memory");
#endif
}

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_DEVICE_TENSOR_CORE_H_
