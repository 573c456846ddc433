// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/fp16.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compression/dense/dense_test_support.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using Limits = std::numeric_limits<float>;

// The scale that brings the largest magnitude to [2^14, 2^15).
double ScaleRef(const std::vector<float>& x) {
  float largest = 0;
  for (const float value : x) largest = std::max(largest, std::abs(value));
  if (largest == 0) return 0x1p-14;
  return std::ldexp(1.0, std::max(std::ilogb(largest) - 14, -127));
}

// The nearest half: 11 bits, or a multiple of 2^-24.
double HalfRef(double x) {
  const double place = std::ldexp(1.0, std::max(x == 0 ? -24 : std::ilogb(x) - 10, -24));
  return std::nearbyint(x / place) * place;
}

TEST(Fp16, RoundsTheScaledElementsAsTheReference) {
  OnEveryInstructionSet([] {
    for (const int64_t n : kDenseTestSizes) {
      for (const float range : {1.0f, 0x1p127f, 0x1p-110f, 0x1p-140f}) {
        auto x = TestGradient(n, 1);
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] *= range * std::ldexp(1.0f, -static_cast<int>(i % 40));
        }
        const double scale = ScaleRef(x);
        const auto encoding = Encoding(Fp16Codec(), x);
        float scale_there = 0;
        std::memcpy(&scale_there, encoding.data(), sizeof(scale_there));
        ASSERT_EQ(scale_there, static_cast<float>(scale));
        const auto decoded = Decoded(Fp16Codec(), encoding, x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          const double expected = HalfRef(x[i] / scale) * scale;
          ASSERT_EQ(decoded[i], static_cast<float>(expected)) << i << " of " << n << ", " << range;
          ASSERT_EQ(std::signbit(decoded[i]), std::signbit(x[i])) << i;
        }
      }
      ExpectDecodesAlike(Fp16Codec(), TestGradient(n, 1));
    }
  });
}

// Ties among halves, and numbers around the smallest ones.
TEST(Fp16, RoundsTiesToEvenOnEveryInstructionSet) {
  OnEveryInstructionSet([] {
    std::vector<float> x = {0x1p14f};  // the scale is 1
    for (const float step : {1.0f, 0x1p-14f, 0x1p-24f}) {
      for (const float part : {0.25f, 0.5f, 0.75f, 1.5f, 2.5f}) {
        x.push_back(step + part * step * 0x1p-10f);
        x.push_back(-part * step);
      }
    }
    const auto decoded = Decoded(Fp16Codec(), Encoding(Fp16Codec(), x), x.size());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(decoded[i], HalfRef(x[i])) << x[i];
  });
}

TEST(Fp16, KeepsErrorFeedbackInTwoPassesAsInThree) {
  OnEveryInstructionSet([] {
    for (const int64_t n : kDenseTestSizes) ExpectResidualAsInThreePasses(Fp16Codec(), n);
  });
}

TEST(Fp16, EncodesWhatIsFinite) {
  for (const int64_t n : {1, 65, 1025}) ExpectEncodesOnlyFinite(Fp16Codec(), n);
  ExpectEncodesExtremes(Fp16Codec());
}

TEST(Fp16, RefusesOtherLengthsAndNumbersThatAreNotFinite) {
  for (const int64_t n : {1, 65, 1025}) ExpectRefusesOtherLengths(Fp16Codec(), n);
  std::vector<float> to(65);
  for (const float scale : {0.0f, -1.0f, Limits::infinity(), Limits::quiet_NaN(), Limits::max()}) {
    auto encoding = Encoding(Fp16Codec(), TestGradient(65, 1));
    std::memcpy(encoding.data(), &scale, sizeof(scale));
    EXPECT_FALSE(Fp16Codec().Decode(encoding, DecodeTo::kAdd, to)) << scale;
  }
  for (const uint16_t bad : {0x7C00, 0xFC00, 0x7E00}) {
    for (const DecodeTo how : {DecodeTo::kStore, DecodeTo::kAdd, DecodeTo::kSubtract}) {
      auto encoding = Encoding(Fp16Codec(), TestGradient(65, 1));
      std::memcpy(encoding.data() + 4 + 128, &bad, sizeof(bad));
      EXPECT_FALSE(Fp16Codec().Decode(encoding, how, to)) << bad;
    }
  }
}

TEST(Fp16, TakesTwoBytesAnElement) {
  EXPECT_EQ(Fp16Codec().MaxEncodedBytes(262144), 524292u);  // 50.0% of FP32
}

}  // namespace
}  // namespace tug
