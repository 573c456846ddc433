// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_ADD_H_
#define TUG_KERNELS_ADD_H_

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace tug::kernels {

// sum = a + b, as a rank adds a received partial sum to its own. Added in FP32; narrower elements
// are rounded once, to nearest, ties to even. a + b and b + a have the same bits, except for NaNs.
//   a, b, sum [n]; sum may be a, else no overlap; no alignment needed.
// One thread, no pool. Thread-safe.
void Add(const float* a, const float* b, float* sum, int64_t n);
void Add(const Bf16* a, const Bf16* b, Bf16* sum, int64_t n);
void Add(const Fp16* a, const Fp16* b, Fp16* sum, int64_t n);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ADD_H_
