// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/one_bit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "compression/dense/dense_test_support.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr size_t kGroup = 512;

// Reference for one_bit.h. The mean's bits are those of a sum in 64 places, added by halves.
float MeanMagnitude(std::span<const float> group) {
  std::vector<float> sums(64);
  for (size_t i = 0; i < group.size(); ++i) sums[i % 64] += std::abs(group[i]) / 512.0f;
  for (size_t half = 32; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return std::min(sums[0] * (512.0f / static_cast<float>(group.size())),
                  std::numeric_limits<float>::max());
}

std::vector<std::byte> EncodeRef(std::span<const float> x) {
  std::vector<std::byte> out;
  for (size_t at = 0; at < x.size(); at += kGroup) {
    const auto group = x.subspan(at, std::min(kGroup, x.size() - at));
    const float scale = MeanMagnitude(group);
    const auto* const bytes = reinterpret_cast<const std::byte*>(&scale);
    out.insert(out.end(), bytes, bytes + sizeof(scale));
    std::vector<std::byte> signs((group.size() + 63) / 64 * 8);
    for (size_t i = 0; i < group.size(); ++i) {
      if (std::signbit(group[i])) signs[i / 8] |= std::byte{1} << (i % 8);
    }
    out.insert(out.end(), signs.begin(), signs.end());
  }
  return out;
}

TEST(OneBit, HasTheBitsOfTheReference) {
  OnEveryInstructionSet([] {
    for (const int64_t n : kDenseTestSizes) {
      const auto x = TestGradient(n, 1);
      ASSERT_EQ(Encoding(OneBitCodec(), x), EncodeRef(x)) << n;
    }
  });
}

TEST(OneBit, DecodesToTheSignTimesTheMeanMagnitudeOfItsGroup) {
  OnEveryInstructionSet([] {
    for (const int64_t n : kDenseTestSizes) {
      const auto x = TestGradient(n, 1);
      const auto decoded = Decoded(OneBitCodec(), Encoding(OneBitCodec(), x), x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t at = i / kGroup * kGroup;
        const auto group = std::span(x).subspan(at, std::min(kGroup, x.size() - at));
        ASSERT_EQ(decoded[i], std::copysign(MeanMagnitude(group), x[i])) << i << " of " << n;
      }
      ExpectDecodesAlike(OneBitCodec(), x);
    }
  });
}

TEST(OneBit, KeepsErrorFeedbackInOnePassAsInThree) {
  OnEveryInstructionSet([] {
    for (const int64_t n : kDenseTestSizes) ExpectResidualAsInThreePasses(OneBitCodec(), n);
  });
}

// The residual is orthogonal to the signs: the sum of the magnitudes is kept in every group.
TEST(OneBit, KeepsTheSumOfMagnitudesOfAGroup) {
  const auto x = TestGradient(512, 3);
  const auto decoded = Decoded(OneBitCodec(), Encoding(OneBitCodec(), x), x.size());
  const auto magnitudes = [](const std::vector<float>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0,
                           [](double sum, float value) { return sum + std::abs(value); });
  };
  EXPECT_NEAR(magnitudes(decoded), magnitudes(x), 1e-4);
}

TEST(OneBit, EncodesWhatIsFinite) {
  for (const int64_t n : {1, 65, 1025}) ExpectEncodesOnlyFinite(OneBitCodec(), n);
  ExpectEncodesExtremes(OneBitCodec());
}

TEST(OneBit, RefusesOtherLengthsAndScalesThatAreNoMagnitude) {
  using Limits = std::numeric_limits<float>;
  for (const int64_t n : {1, 65, 1025}) ExpectRefusesOtherLengths(OneBitCodec(), n);
  const auto x = TestGradient(1025, 1);
  std::vector<float> to(x.size());
  for (const float scale : {-1.0f, Limits::infinity(), Limits::quiet_NaN()}) {
    auto encoding = Encoding(OneBitCodec(), x);
    std::memcpy(encoding.data() + 68, &scale, sizeof(scale));
    EXPECT_FALSE(OneBitCodec().Decode(encoding, DecodeTo::kAdd, to)) << scale;
  }
}

TEST(OneBit, TakesABitAnElementAndAScaleAGroup) {
  EXPECT_EQ(OneBitCodec().MaxEncodedBytes(262144), 34816u);  // 3.32% of FP32
  EXPECT_EQ(OneBitCodec().MaxEncodedBytes(1), 12u);
  EXPECT_EQ(OneBitCodec().MaxEncodedBytes(513), 80u);
}

}  // namespace
}  // namespace tug
