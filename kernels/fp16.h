// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_FP16_H_
#define TUG_KERNELS_FP16_H_

#include <cstdint>

namespace tug::kernels {

// IEEE 754 binary16.
enum class Fp16 : uint16_t {};

// All functions: one thread, no pool, thread-safe, no alignment needed (messages are read in
// place), spans do not overlap.

// dst = src rounded to nearest, ties to even, denormals included. Infinities stay; a NaN becomes
// the quiet NaN of its sign; a value that rounds beyond the largest FP16 becomes an infinity.
//   src, dst [n]
void Fp16FromFloat(const float* src, Fp16* dst, int64_t n);

// dst = src, exactly; a NaN becomes a quiet NaN.
//   src, dst [n]
void FloatFromFp16(const Fp16* src, float* dst, int64_t n);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_FP16_H_
