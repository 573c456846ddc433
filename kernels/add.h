#ifndef TUG_KERNELS_ADD_H_
#define TUG_KERNELS_ADD_H_

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace tug::kernels {

// sum = a + b, what a rank does with what it receives: added in FP32 and, where the elements are
// narrower, rounded once, to nearest, ties to even. The same bits for a + b and b + a, but for
// NaNs.
//   a, b, sum [n]; sum may be a, else no overlap; no alignment needed.
// One thread, no pool. Thread-safe.
void Add(const float* a, const float* b, float* sum, int64_t n);
void Add(const Bf16* a, const Bf16* b, Bf16* sum, int64_t n);
void Add(const Fp16* a, const Fp16* b, Fp16* sum, int64_t n);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ADD_H_
