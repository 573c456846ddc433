#ifndef TUG_COMPRESSION_RESIDUAL_H_
#define TUG_COMPRESSION_RESIDUAL_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "kernels/sum.h"

namespace tug {

// SegmentCodec::EncodeWithResidual around what a codec does faster than that. `encode()` adds
// `elements` to `residual`, encodes the sum and leaves in `residual` what the encoding lacks; it
// returns false, with anything in `residual`, if a sum is not finite. Returns whether there is an
// encoding; the pass over `elements` beforehand is what lets a residual stay as it was if not.
template <typename Encode>
bool EncodeSum(std::span<const float> elements, std::span<float> residual, Encode&& encode) {
  TUG_CHECK_EQ(elements.size(), residual.size());
  if (!kernels::AllFinite(elements.data(), static_cast<int64_t>(elements.size()))) return false;
  if (encode()) return true;
  std::fill(residual.begin(), residual.end(), 0.0f);
  TUG_CHECK(encode());
  return true;
}

}  // namespace tug

#endif  // TUG_COMPRESSION_RESIDUAL_H_
