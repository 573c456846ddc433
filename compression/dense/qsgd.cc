// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/qsgd.h"

#include <bit>

#include "compression/dense/dither.h"
#include "compression/dense/levels.h"
#include "compression/dense/unaligned.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/dense/qsgd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "compression/dense/groups-inl.h"
#include "compression/dense/levels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::HWY_NAMESPACE {

using QsgdFormat = Levels<QsgdSegmentCodec::kGroup, /*kRandom=*/true>;

bool EncodeQsgd(const float* x, int64_t n, int bits, const Dither& dither, std::byte* out) {
  return EncodeGroups(QsgdFormat{bits, &dither}, x, n, out);
}

bool DecodeQsgd(const std::byte* in, int bits, DecodeTo to, int64_t n, float* x) {
  return DecodeGroups(QsgdFormat{bits}, in, to, n, x);
}

}  // namespace tug::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug {

HWY_EXPORT(EncodeQsgd);
HWY_EXPORT(DecodeQsgd);

namespace {

size_t QsgdBytes(size_t elements, int bits) {
  return static_cast<size_t>(
      1 + LevelsBytes(static_cast<int64_t>(elements), QsgdSegmentCodec::kGroup, bits));
}

}  // namespace

QsgdSegmentCodec::QsgdSegmentCodec(const PushCodecConfig& config)
    : bits_(std::bit_width(config.qsgd().levels())) {}

size_t QsgdSegmentCodec::MaxEncodedBytes(size_t elements) const {
  return QsgdBytes(elements, bits_);
}

size_t QsgdSegmentCodec::Encode(const CodecKey& key, std::span<const float> elements,
                                std::span<std::byte> out, CodecScratch& /*scratch*/) const {
  out[0] = static_cast<std::byte>((1 << bits_) - 1);
  const auto n = static_cast<int64_t>(elements.size());
  const bool finite =
      HWY_DYNAMIC_DISPATCH(EncodeQsgd)(elements.data(), n, bits_, Dither(key), out.data() + 1);
  return finite ? MaxEncodedBytes(elements.size()) : 0;
}

bool QsgdSegmentCodec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                              std::span<float> elements) const {
  if (encoded.empty()) return false;
  const uint32_t levels = LoadOnce<uint8_t>(encoded.data());
  if (levels == 0 || levels > 127 || !std::has_single_bit(levels + 1)) return false;
  const int bits = std::bit_width(levels);
  if (encoded.size() != QsgdBytes(elements.size(), bits)) return false;
  return HWY_DYNAMIC_DISPATCH(DecodeQsgd)(encoded.data() + 1, bits, to,
                                          static_cast<int64_t>(elements.size()), elements.data());
}

}  // namespace tug
#endif  // HWY_ONCE
