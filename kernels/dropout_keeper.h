// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_DROPOUT_KEEPER_H_
#define TUG_KERNELS_DROPOUT_KEEPER_H_

#include <cstdint>

#include "kernels/dropout.h"

namespace tug::kernels {

// Maximum elements of a sample: a Philox counter numbers blocks of 64 in 32 bits, 16 lanes per
// block.
inline constexpr int64_t kMaxDropoutElements = int64_t{1} << 34;

// Parameters by which vector code decides which elements are kept.
struct DropoutKeeper {
  DropoutKey key;
  uint32_t threshold;  // of DropoutThreshold; 0: every element is kept
  float scale;         // 1 / (1 - p)
};

// REQUIRES: 0 <= p < 1.
inline DropoutKeeper MakeDropoutKeeper(const DropoutKey& key, float p) {
  return {key, DropoutThreshold(p), 1.0f / (1.0f - p)};
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_DROPOUT_KEEPER_H_
