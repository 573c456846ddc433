// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/natural.h"

#include <algorithm>
#include <cstring>

#include "compression/dense/dither.h"
#include "compression/dense/unaligned.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/dense/natural.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "compression/dense/groups-inl.h"
#include "kernels/simd/philox-inl.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::HWY_NAMESPACE {

using ByteTag = hn::Rebind<uint8_t, FloatTag>;

constexpr int kMantissaBits = 23;

// FP32 exponent of the largest finite power of two.
constexpr int32_t kLargestExponent = 254;

// Encodes 64 elements. Between two powers of two, FP32 numbers are equally spaced both as numbers
// and as integer bits: adding a random amount, up to one less than a whole exponent, carries into
// the exponent with the probability of unbiased rounding.
HWY_INLINE void EncodeBlock(const float* x, const Dither& dither, int64_t block, int32_t top,
                            std::byte* out) {
  const FloatTag d;
  const IntTag di;
  const int64_t lanes = FloatLanes();
  const auto most = hn::Set(di, top), lowest = hn::Set(di, top - 127);
  for (int64_t lane = 0; lane < 16; lane += lanes) {
    const auto words =
        kernels::HWY_NAMESPACE::RandomWords(dither.Counter(block, lane), dither.philox_key());
    for (int64_t j = 0; j < 4; ++j) {
      const auto value = hn::LoadU(d, x + 16 * j + lane);
      const auto draw = hn::BitCast(di, hn::ShiftRight<32 - kMantissaBits>(words.word[j]));
      const auto bits = hn::Add(hn::BitCast(di, hn::Abs(value)), draw);
      const auto exponent = hn::Min(hn::ShiftRight<kMantissaBits>(bits), most);
      // Exponent 0 is not that of a power of two.
      const auto some = hn::Gt(exponent, hn::Zero(di));
      const auto code = hn::IfThenElseZero(some, hn::Max(hn::Sub(exponent, lowest), hn::Zero(di)));
      const auto sign = hn::And(hn::BitCast(di, value), hn::Set(di, INT32_MIN));
      const auto byte = hn::Or(
          code,
          hn::BitCast(di, hn::ShiftRight<24>(hn::BitCast(hn::RebindToUnsigned<FloatTag>(), sign))));
      HWY_ALIGN uint8_t bytes[hn::MaxLanes(ByteTag())];
      hn::Store(hn::DemoteTo(ByteTag(), byte), ByteTag(), bytes);
      std::memcpy(out + 16 * j + lane, bytes, sizeof(bytes));
    }
  }
}

bool EncodeNatural(const float* x, int64_t n, const Dither& dither, std::byte* out) {
  const int32_t largest_bits = LargestBits(x, n);
  if (largest_bits >= kInfinityBits) return false;
  const int32_t top = std::min((largest_bits >> kMantissaBits) + 1, kLargestExponent);
  *out++ = static_cast<std::byte>(top);
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) EncodeBlock(x + i, dither, i / 64, top, out + i);
  if (i == n) return true;
  float padded[64] = {};
  std::byte codes[64];
  std::copy_n(x + i, n - i, padded);
  EncodeBlock(padded, dither, i / 64, top, codes);
  std::copy_n(codes, n - i, out + i);
  return true;
}

template <DecodeTo kTo>
HWY_INLINE void DecodeBytes(const std::byte* in, int32_t top, int64_t n, float* x) {
  const FloatTag d;
  const IntTag di;
  const int64_t lanes = FloatLanes();
  const auto lowest = hn::Set(di, top - 127);
  const auto step = [&](int64_t i, int64_t left) HWY_ATTR {
    HWY_ALIGN uint8_t bytes[hn::MaxLanes(ByteTag())] = {};
    std::memcpy(bytes, in + i, static_cast<size_t>(std::min(left, lanes)));
    const auto byte = hn::PromoteTo(di, hn::Load(ByteTag(), bytes));
    const auto code = hn::And(byte, hn::Set(di, 127));
    const auto exponent = hn::Max(hn::Add(code, lowest), hn::Zero(di));
    const auto power =
        hn::IfThenElseZero(hn::Gt(code, hn::Zero(di)), hn::ShiftLeft<kMantissaBits>(exponent));
    const auto sign = hn::ShiftLeft<24>(hn::AndNot(hn::Set(di, 127), byte));
    auto value = hn::BitCast(d, hn::Or(power, sign));
    if constexpr (kTo == DecodeTo::kAdd) value = hn::Add(LoadUpTo(x + i, left), value);
    if constexpr (kTo == DecodeTo::kSubtract) value = hn::Sub(LoadUpTo(x + i, left), value);
    StoreUpTo(value, x + i, left);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) step(i, lanes);
  if (i < n) step(i, n - i);
}

bool DecodeNatural(const std::byte* in, DecodeTo to, int64_t n, float* x) {
  const int32_t top = LoadOnce<uint8_t>(in++);
  if (top < 1 || top > kLargestExponent) return false;
  switch (to) {
    case DecodeTo::kStore:
      DecodeBytes<DecodeTo::kStore>(in, top, n, x);
      return true;
    case DecodeTo::kAdd:
      DecodeBytes<DecodeTo::kAdd>(in, top, n, x);
      return true;
    case DecodeTo::kSubtract:
      DecodeBytes<DecodeTo::kSubtract>(in, top, n, x);
      return true;
  }
  return false;
}

}  // namespace tug::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug {

HWY_EXPORT(EncodeNatural);
HWY_EXPORT(DecodeNatural);

size_t NaturalCodec::MaxEncodedBytes(size_t elements) const { return 1 + elements; }

size_t NaturalCodec::Encode(const CodecKey& key, std::span<const float> elements,
                            std::span<std::byte> out, CodecScratch& /*scratch*/) const {
  const bool finite = HWY_DYNAMIC_DISPATCH(EncodeNatural)(
      elements.data(), static_cast<int64_t>(elements.size()), Dither(key), out.data());
  return finite ? MaxEncodedBytes(elements.size()) : 0;
}

bool NaturalCodec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                          std::span<float> elements) const {
  if (encoded.size() != MaxEncodedBytes(elements.size())) return false;
  return HWY_DYNAMIC_DISPATCH(DecodeNatural)(
      encoded.data(), to, static_cast<int64_t>(elements.size()), elements.data());
}

}  // namespace tug
#endif  // HWY_ONCE
