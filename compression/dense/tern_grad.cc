// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/tern_grad.h"

#include "compression/dense/dither.h"
#include "compression/dense/levels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/dense/tern_grad.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "compression/dense/groups-inl.h"
#include "compression/dense/levels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::HWY_NAMESPACE {

using TernGradFormat = Levels<TernGradCodec::kGroup, /*kRandom=*/true>;

bool EncodeTernGrad(const float* x, int64_t n, const Dither& dither, std::byte* out) {
  return EncodeGroups(TernGradFormat{/*bits=*/1, &dither}, x, n, out);
}

bool DecodeTernGrad(const std::byte* in, DecodeTo to, int64_t n, float* x) {
  return DecodeGroups(TernGradFormat{/*bits=*/1}, in, to, n, x);
}

}  // namespace tug::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug {

HWY_EXPORT(EncodeTernGrad);
HWY_EXPORT(DecodeTernGrad);

size_t TernGradCodec::MaxEncodedBytes(size_t elements) const {
  return static_cast<size_t>(LevelsBytes(static_cast<int64_t>(elements), kGroup, /*bits=*/1));
}

size_t TernGradCodec::Encode(const CodecKey& key, std::span<const float> elements,
                             std::span<std::byte> out, CodecScratch& /*scratch*/) const {
  const bool finite = HWY_DYNAMIC_DISPATCH(EncodeTernGrad)(
      elements.data(), static_cast<int64_t>(elements.size()), Dither(key), out.data());
  return finite ? MaxEncodedBytes(elements.size()) : 0;
}

bool TernGradCodec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                           std::span<float> elements) const {
  if (encoded.size() != MaxEncodedBytes(elements.size())) return false;
  return HWY_DYNAMIC_DISPATCH(DecodeTernGrad)(
      encoded.data(), to, static_cast<int64_t>(elements.size()), elements.data());
}

}  // namespace tug
#endif  // HWY_ONCE
