// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_LEVELS_H_
#define TUG_COMPRESSION_DENSE_LEVELS_H_

#include <cstdint>

namespace tug {

// Bytes of n elements encoded by levels-inl.h: in groups of `group`, with levels of `bits` bits.
constexpr int64_t LevelsBytes(int64_t n, int64_t group, int bits) {
  return (n + group - 1) / group * 4 + (n + 63) / 64 * 8 * (bits + 1);
}

}  // namespace tug

#endif  // TUG_COMPRESSION_DENSE_LEVELS_H_
