#ifndef TUG_COMPRESSION_RESIDUAL_H_
#define TUG_COMPRESSION_RESIDUAL_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/check.h"

namespace tug {

// SegmentCodec::EncodeWithResidual around what a codec does. `encode()` adds `elements` to
// `residual`, encodes the sum and leaves in `residual` what the encoding lacks; it returns false,
// with anything in `residual`, if there is no encoding of the sum: then the residual is given up,
// and the elements are encoded without. Returns whether there is an encoding. `state_floats`: what
// the codec keeps behind the residual, and goes with it (SegmentCodec::StateFloats).
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
