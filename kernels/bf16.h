// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_BF16_H_
#define TUG_KERNELS_BF16_H_

#include <cstdint>

namespace tug::kernels {

// The upper 16 bits of an FP32 number.
enum class Bf16 : uint16_t {};

// All functions: one thread, no pool, thread-safe, no alignment needed (messages are read in
// place), spans do not overlap.

// dst = src rounded to nearest, ties to even. Infinities stay; a NaN becomes or stays a quiet NaN;
// a value that rounds beyond the largest bf16 becomes an infinity.
//   src, dst [n]
void Bf16FromFloat(const float* src, Bf16* dst, int64_t n);

// dst = src, exactly.
//   src, dst [n]
void FloatFromBf16(const Bf16* src, float* dst, int64_t n);

// dst = src and acc += src, like CopyAndCheck and AddAndCheck of sum.h: the same bits as widening
// src first. Return whether every element of src is finite.
//   src, dst, acc [n]
bool CopyAndCheckBf16(const Bf16* src, float* dst, int64_t n);
bool AddAndCheckBf16(const Bf16* src, float* acc, int64_t n);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_BF16_H_
