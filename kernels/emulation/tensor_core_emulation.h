// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_EMULATION_TENSOR_CORE_EMULATION_H_
#define TUG_KERNELS_EMULATION_TENSOR_CORE_EMULATION_H_

// CPU implementation of kernels/cuda/device/tensor_core.h: gathers the fragments of a warp's lanes
// into matrices, in the layouts of that header.

#include <bit>
#include <cstdint>
#include <cstring>
#include <source_location>

#include "kernels/emulation/cuda_emulation_scheduler.h"

namespace tug::kernels::emulation {

inline float HalfOfPair(unsigned pair, int which) {
  return std::bit_cast<float>(which == 0 ? pair << 16 : pair & 0xFFFF0000u);
}

struct MultiplyAddLane {
  const unsigned* a;
  const unsigned* b;
  float* c;

  static void Combine(void* const lanes[32], uint32_t) {
    float a[16][16], b[16][8];
    for (int lane = 0; lane < 32; ++lane) {
      const auto& mine = *static_cast<const MultiplyAddLane*>(lanes[lane]);
      const int g = lane / 4, t = lane % 4;
      for (int half = 0; half < 2; ++half) {
        for (int i = 0; i < 4; ++i) {
          a[g + i % 2 * 8][2 * t + i / 2 * 8 + half] = HalfOfPair(mine.a[i], half);
        }
        for (int i = 0; i < 2; ++i) b[2 * t + i * 8 + half][g] = HalfOfPair(mine.b[i], half);
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      const auto& mine = *static_cast<const MultiplyAddLane*>(lanes[lane]);
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i / 2 * 8, column = 2 * (lane % 4) + i % 2;
        float sum = 0;
        for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
        mine.c[i] += sum;
      }
    }
  }
};

inline constexpr WarpOperation kMultiplyAdd = {"mma.sync", &MultiplyAddLane::Combine};
inline constexpr uint32_t kWholeWarp = 0xFFFFFFFFu;

inline void MultiplyAdd(const unsigned* a, const unsigned* b, float* c,
                        const std::source_location& where = std::source_location::current()) {
  MultiplyAddLane mine = {a, b, c};
  RunWarpOperation(kWholeWarp, kMultiplyAdd, &mine, where);
}

struct LoadMatricesLane {
  int matrices;
  bool transposed;
  const void* row;
  unsigned* x;

  static void Combine(void* const lanes[32], uint32_t) {
    const auto of = [&](int lane) { return *static_cast<const LoadMatricesLane*>(lanes[lane]); };
    for (int matrix = 0; matrix < of(0).matrices; ++matrix) {
      uint16_t elements[8][8];
      for (int row = 0; row < 8; ++row) {
        const void* const from = of(8 * matrix + row).row;
        if (!IsShared(from, 16) || reinterpret_cast<uintptr_t>(from) % 16 != 0) {
          Fail("ldmatrix: a row that is not at a 16-byte boundary of shared memory");
        }
        std::memcpy(elements[row], from, 16);
      }
      for (int lane = 0; lane < 32; ++lane) {
        const LoadMatricesLane mine = of(lane);
        const int g = lane / 4, t = lane % 4;
        const unsigned first = mine.transposed ? elements[2 * t][g] : elements[g][2 * t];
        const unsigned second = mine.transposed ? elements[2 * t + 1][g] : elements[g][2 * t + 1];
        mine.x[matrix] = first | second << 16;
      }
    }
  }
};

inline constexpr WarpOperation kLoadMatrices = {"ldmatrix.sync", &LoadMatricesLane::Combine};

inline void LoadMatrices(int matrices, bool transposed, const void* row, unsigned* x,
                         const std::source_location& where = std::source_location::current()) {
  LoadMatricesLane mine = {matrices, transposed, row, x};
  RunWarpOperation(kWholeWarp, kLoadMatrices, &mine, where);
}

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_EMULATION_TENSOR_CORE_EMULATION_H_
