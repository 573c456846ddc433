#ifndef TUG_KERNELS_DROPOUT_KEEPER_H_
#define TUG_KERNELS_DROPOUT_KEEPER_H_

#include <cstdint>

#include "kernels/dropout.h"

namespace tug::kernels {

// Elements of a sample, at most: a Philox counter numbers 64 of them, in 32 bits and 16 lanes.
inline constexpr int64_t kMaxDropoutElements = int64_t{1} << 34;

// What the vector code needs to decide which elements are kept.
struct DropoutKeeper {
  DropoutKey key;
  uint32_t threshold;  // 0: every element
  float scale;         // 1 / (1 - p)
};

// REQUIRES: 0 <= p < 1.
inline DropoutKeeper MakeDropoutKeeper(const DropoutKey& key, float p) {
  return {key, DropoutThreshold(p), 1.0f / (1.0f - p)};
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_DROPOUT_KEEPER_H_
