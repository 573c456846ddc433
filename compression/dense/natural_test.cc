// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/natural.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "compression/dense/dense_test_support.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

// Reference for natural.h: x lies between two powers of two, and becomes the upper one with a
// probability equal to its position between them.
std::vector<std::byte> EncodeRef(const std::vector<float>& x) {
  float largest = 0;
  for (const float value : x) largest = std::max(largest, std::abs(value));
  const int top = std::min(largest < 0x1p-126f ? -126 : std::ilogb(largest) + 1, 127);
  std::vector<std::byte> out = {static_cast<std::byte>(top + 127)};
  for (size_t i = 0; i < x.size(); ++i) {
    const float magnitude = std::abs(x[i]);
    const double draw = static_cast<double>(DrawRef(kTestKey, i) >> 9) * 0x1p-23;
    int exponent = -127;  // of 0, below 2^-126
    double part = magnitude * 0x1p126;
    if (magnitude >= 0x1p-126f) {
      exponent = std::ilogb(magnitude);
      part = magnitude / std::ldexp(1.0, exponent) - 1;
    }
    if (draw + part >= 1) exponent = std::min(exponent + 1, 127);
    const int code = exponent == -127 ? 0 : std::max(exponent - top + 127, 0);
    out.push_back(static_cast<std::byte>(code | (std::signbit(x[i]) ? 128 : 0)));
  }
  return out;
}

TEST(Natural, DrawsAsTheReference) {
  OnEveryInstructionSet([] {
    for (const int64_t n : kDenseTestSizes) {
      for (const float range : {1.0f, 0x1p127f, 0x1p-120f, 0x1p-128f}) {
        auto x = TestGradient(n, 1);
        for (float& value : x) value *= range;
        ASSERT_EQ(Encoding(NaturalCodec(), x), EncodeRef(x)) << n << " up to " << range;
      }
      ExpectDecodesAlike(NaturalCodec(), TestGradient(n, 1));
    }
  });
}

TEST(Natural, DecodesToAPowerOfTwoBesideTheElement) {
  const auto x = TestGradient(5000, 1);
  const auto decoded = Decoded(NaturalCodec(), Encoding(NaturalCodec(), x), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const float lower = std::ldexp(1.0f, std::ilogb(x[i]));
    ASSERT_TRUE(std::abs(decoded[i]) == lower || std::abs(decoded[i]) == 2 * lower) << i;
    ASSERT_EQ(std::signbit(decoded[i]), std::signbit(x[i])) << i;
  }
}

TEST(Natural, KeepsPowersOfTwo) {
  std::vector<float> x;
  for (int exponent = -126; exponent <= 0; ++exponent) x.push_back(std::ldexp(-1.0f, exponent));
  const auto decoded = Decoded(NaturalCodec(), Encoding(NaturalCodec(), x), x.size());
  // The largest can be rounded up to 2, and 2^-125 is the lowest power after 126 halvings of that.
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(decoded[i], i < 1 ? 0.0f : x[i]) << i;
}

TEST(Natural, IsRightOnAverage) {
  const auto x = TestGradient(200, 1);
  ExpectUnbiased(NaturalCodec(), x, [&](size_t i) { return std::ldexp(1.0, std::ilogb(x[i])); });
}

TEST(Natural, DrawsByItsKey) { ExpectDrawsByKey(NaturalCodec()); }

TEST(Natural, EncodesWhatIsFinite) {
  for (const int64_t n : {1, 65, 1025}) ExpectEncodesOnlyFinite(NaturalCodec(), n);
  ExpectEncodesExtremes(NaturalCodec());
}

TEST(Natural, DecodesAnyBytesToFiniteNumbers) {
  OnEveryInstructionSet([] {
    std::vector<std::byte> encoding(257);
    for (int i = 0; i < 256; ++i) encoding[i + 1] = static_cast<std::byte>(i);
    for (int top = 1; top <= 254; ++top) {
      encoding[0] = static_cast<std::byte>(top);
      for (const float value : Decoded(NaturalCodec(), encoding, 256)) {
        ASSERT_TRUE(std::isfinite(value)) << top;
      }
    }
  });
}

TEST(Natural, RefusesOtherLengthsAndExponents) {
  for (const int64_t n : {1, 65, 1025}) ExpectRefusesOtherLengths(NaturalCodec(), n);
  std::vector<float> to(65);
  for (const int top : {0, 255}) {
    auto encoding = Encoding(NaturalCodec(), TestGradient(65, 1));
    encoding[0] = static_cast<std::byte>(top);
    EXPECT_FALSE(NaturalCodec().Decode(encoding, DecodeTo::kStore, to)) << top;
  }
}

TEST(Natural, TakesAByteAnElement) {
  EXPECT_EQ(NaturalCodec().MaxEncodedBytes(262144), 262145u);  // 25.0% of FP32
}

}  // namespace
}  // namespace tug
