// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CPU_LINEAR_STORE_TILE_H_
#define TUG_KERNELS_CPU_LINEAR_STORE_TILE_H_

#include <cstdint>

#include "kernels/bf16.h"

namespace tug::kernels {

// c = sums + bias, or with `accumulate` c += sums + bias: stores a tile of a product from scratch
// into its matrix. C is float or Bf16; computed in FP32, rounded once.
//   sums [rows][columns]; bias [columns] or nullptr; c [rows][stride], its first `columns` columns
// Runs on the calling thread. The bits of an element do not depend on its position. Thread-safe.
template <typename C>
void StoreTile(int64_t rows, int64_t columns, const float* sums, const float* bias, bool accumulate,
               C* c, int64_t stride);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CPU_LINEAR_STORE_TILE_H_
