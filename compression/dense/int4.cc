// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/int4.h"

#include "compression/dense/levels.h"
#include "compression/residual.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/dense/int4.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "compression/dense/groups-inl.h"
#include "compression/dense/levels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::HWY_NAMESPACE {

using Int4Format = Levels<Int4Codec::kGroup, /*kRandom=*/false>;

bool EncodeInt4(const float* x, int64_t n, std::byte* out) {
  return EncodeGroups(Int4Format{/*bits=*/3}, x, n, out);
}

bool EncodeInt4WithResidual(const float* x, float* residual, int64_t n, std::byte* out) {
  return EncodeGroupsWithResidual(Int4Format{/*bits=*/3}, x, residual, n, out);
}

bool DecodeInt4(const std::byte* in, DecodeTo to, int64_t n, float* x) {
  return DecodeGroups(Int4Format{/*bits=*/3}, in, to, n, x);
}

}  // namespace tug::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug {

HWY_EXPORT(EncodeInt4);
HWY_EXPORT(EncodeInt4WithResidual);
HWY_EXPORT(DecodeInt4);

size_t Int4Codec::MaxEncodedBytes(size_t elements) const {
  return static_cast<size_t>(LevelsBytes(static_cast<int64_t>(elements), kGroup, /*bits=*/3));
}

size_t Int4Codec::Encode(const CodecKey& /*key*/, std::span<const float> elements,
                         std::span<std::byte> out, CodecScratch& /*scratch*/) const {
  const bool finite = HWY_DYNAMIC_DISPATCH(EncodeInt4)(
      elements.data(), static_cast<int64_t>(elements.size()), out.data());
  return finite ? MaxEncodedBytes(elements.size()) : 0;
}

size_t Int4Codec::EncodeWithResidual(const CodecKey& /*key*/, std::span<const float> elements,
                                     std::span<float> residual, std::span<std::byte> out,
                                     CodecScratch& /*scratch*/) const {
  const bool finite = EncodeSum(elements, residual, [&] {
    return HWY_DYNAMIC_DISPATCH(EncodeInt4WithResidual)(
        elements.data(), residual.data(), static_cast<int64_t>(elements.size()), out.data());
  });
  return finite ? MaxEncodedBytes(elements.size()) : 0;
}

bool Int4Codec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                       std::span<float> elements) const {
  if (encoded.size() != MaxEncodedBytes(elements.size())) return false;
  return HWY_DYNAMIC_DISPATCH(DecodeInt4)(encoded.data(), to, static_cast<int64_t>(elements.size()),
                                          elements.data());
}

}  // namespace tug
#endif  // HWY_ONCE
