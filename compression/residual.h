// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_RESIDUAL_H_
#define TUG_COMPRESSION_RESIDUAL_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/check.h"

namespace tug {

// Implements SegmentCodec::EncodeWithResidual for a codec. `encode()` adds `elements` to
// `residual`, encodes the sum and leaves the encoding error in `residual`; it returns false, with
// anything in `residual`, if the sum has no encoding: then the residual is discarded, and the
// elements are encoded alone. Returns whether there is an encoding. `state_floats`: state after the
// residual, which is discarded with it (SegmentCodec::StateFloats).
template <typename Encode>
bool EncodeSum(std::span<const float> elements, std::span<float> residual, Encode&& encode,
               size_t state_floats = 0) {
  TUG_CHECK_EQ(elements.size() + state_floats, residual.size());
  if (encode()) return true;
  std::fill(residual.begin(), residual.end(), 0.0f);
  if (encode()) return true;
  std::fill(residual.begin(), residual.end(), 0.0f);
  return false;
}

}  // namespace tug

#endif  // TUG_COMPRESSION_RESIDUAL_H_
