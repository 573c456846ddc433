// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/int8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug {
namespace {

using kernels::RandomFloats;
using Limits = std::numeric_limits<float>;

constexpr size_t kSizes[] = {1, 2, 255, 256, 257, 511, 512, 1000, 4096, 4099};
constexpr float kLargestScale = 0x1.020406p+121f;

static_assert(Int8Bytes(1) == 5);
static_assert(Int8Bytes(256) == 260);
static_assert(Int8Bytes(257) == 265);
static_assert(Int8Bytes(262144) * 10000 / (262144 * sizeof(float)) == 2539);

std::vector<float> Random(size_t n, uint32_t seed, float range = 1.0f) {
  return RandomFloats(static_cast<int64_t>(n), seed, range);
}

// Runs with every instruction set of this machine.
class Int8 : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  std::vector<std::byte> Encoded(const std::vector<float>& elements) {
    std::vector<std::byte> out(Int8Bytes(elements.size()) + 1, std::byte{0x5a});
    EXPECT_EQ(codec_.Encode(CodecKey(), elements, out, scratch_), Int8Bytes(elements.size()));
    EXPECT_EQ(out.back(), std::byte{0x5a}) << "wrote beyond the end";
    out.pop_back();
    return out;
  }
  std::vector<float> Decoded(const std::vector<std::byte>& encoded, size_t n,
                             DecodeTo to = DecodeTo::kStore, float start = 0.0f) {
    std::vector<float> decoded(n + 1, start);
    EXPECT_TRUE(codec_.Decode(encoded, to, std::span(decoded).first(n)));
    EXPECT_EQ(decoded[n], start) << "wrote beyond the end";
    decoded.pop_back();
    return decoded;
  }
  std::vector<float> RoundTrip(const std::vector<float>& elements) {
    return Decoded(Encoded(elements), elements.size());
  }

  const Int8Codec codec_;
  CodecScratch scratch_;
};

// Reference for int8.h.
std::vector<std::byte> EncodedRef(const std::vector<float>& elements) {
  std::vector<float> scales;
  std::vector<std::byte> bytes;
  for (size_t begin = 0; begin < elements.size(); begin += kInt8Group) {
    const size_t end = std::min(begin + kInt8Group, elements.size());
    float largest = 0;
    for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(elements[i]));
    const float scale = std::clamp(largest / 127.0f, Limits::min(), kLargestScale);
    scales.push_back(scale);
    for (size_t i = begin; i < end; ++i) {  // std::nearbyint: ties to even
      bytes.push_back(std::byte(static_cast<int8_t>(std::nearbyint(elements[i] * (1.0f / scale)))));
    }
  }
  std::vector<std::byte> encoded(scales.size() * sizeof(float));
  std::memcpy(encoded.data(), scales.data(), encoded.size());
  encoded.insert(encoded.end(), bytes.begin(), bytes.end());
  return encoded;
}

TEST_P(Int8, HasTheBytesOfTheReferenceAtEverySize) {
  for (const size_t n : kSizes) {
    for (const float range : {1e-38f, 1e-6f, 1.0f, 1e30f}) {
      const auto elements = Random(n, 1, range);
      EXPECT_EQ(Encoded(elements), EncodedRef(elements)) << n << " elements up to " << range;
    }
  }
}

TEST_P(Int8, IsWithinHalfAScaleOfEveryElement) {
  for (const size_t n : kSizes) {
    const auto elements = Random(n, 2);
    const auto decoded = RoundTrip(elements);
    for (size_t i = 0; i < n; ++i) {
      const size_t begin = i / kInt8Group * kInt8Group;
      float largest = 0;
      for (size_t j = begin; j < std::min(begin + kInt8Group, n); ++j) {
        largest = std::max(largest, std::abs(elements[j]));
      }
      const double bound = largest / 254.0 + 0x1p-22 * std::abs(elements[i]);
      ASSERT_LE(std::abs(double{decoded[i]} - elements[i]), bound) << i << " of " << n;
    }
  }
}

TEST_P(Int8, RoundsToTheNearestAndTiesToEven) {
  std::vector<float> elements = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49999997f, 100.51f, -127};
  const std::vector<float> expected = {127, 0, 2, 2, 0, -2, 0, 101, -127};
  kernels::ExpectSameBits(RoundTrip(elements), expected);
}

TEST_P(Int8, GivesPositiveZerosForZerosAndForWhatIsTooSmall) {
  std::vector<float> elements(300, -0.0f);
  kernels::ExpectSameBits(RoundTrip(elements), std::vector<float>(300, 0.0f));
  elements[7] = Limits::denorm_min();
  elements[8] = -Limits::denorm_min();
  kernels::ExpectSameBits(RoundTrip(elements), std::vector<float>(300, 0.0f));
}

TEST_P(Int8, IsWithinHalfTheSmallestNormalNumberOfDenormals) {
  const std::vector<float> elements = {0.75f * Limits::min(), -0.25f * Limits::min(),
                                       2.0f * Limits::min()};
  const std::vector<float> expected = {Limits::min(), 0, 2.0f * Limits::min()};
  kernels::ExpectSameBits(RoundTrip(elements), expected);
}

TEST_P(Int8, DecodesTheLargestMagnitudesToFiniteNumbers) {
  const std::vector<float> elements = {Limits::max(), Limits::lowest(), 0.5f * Limits::max()};
  const auto decoded = RoundTrip(elements);
  for (size_t i = 0; i < elements.size(); ++i) {
    EXPECT_TRUE(std::isfinite(decoded[i]));
    EXPECT_LE(std::abs(double{decoded[i]} - elements[i]), Limits::max() / 254.0 * 1.00001) << i;
  }
}

TEST_P(Int8, AddsAndSubtractsWhatItStores) {
  for (const size_t n : kSizes) {
    const auto encoded = Encoded(Random(n, 3));
    const auto stored = Decoded(encoded, n);
    const auto added = Decoded(encoded, n, DecodeTo::kAdd, 0.3f);
    const auto subtracted = Decoded(encoded, n, DecodeTo::kSubtract, 0.3f);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(added[i], 0.3f + stored[i]) << i;
      ASSERT_EQ(subtracted[i], 0.3f - stored[i]) << i;
    }
  }
}

TEST_P(Int8, EncodesNothingThatIsNotFinite) {
  const std::vector<std::byte> unused;
  for (const float bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    for (size_t at = 0; at < 300; ++at) {
      std::vector<float> elements(300, 1.0f);
      elements[at] = bad;
      std::vector<std::byte> out(Int8Bytes(300));
      ASSERT_EQ(codec_.Encode(CodecKey(), elements, out, scratch_), 0) << bad << " at " << at;
      std::vector<float> residual(300, 0.25f);
      ASSERT_EQ(codec_.EncodeWithResidual(CodecKey(), elements, residual, out, scratch_), 0);
      ASSERT_EQ(residual, std::vector<float>(300, 0.0f));
    }
  }
}

TEST_P(Int8, KeepsTheResidualAsTheCodecInterfaceSays) {
  for (const size_t n : kSizes) {
    auto residual = Random(n, 4, 0.01f), expected_residual = residual;
    std::vector<std::byte> out(Int8Bytes(n)), expected(Int8Bytes(n));
    for (uint32_t clock = 0; clock < 5; ++clock) {
      const auto elements = Random(n, 5 + clock);
      EXPECT_EQ(codec_.EncodeWithResidual(CodecKey(), elements, residual, out, scratch_),
                codec_.SegmentCodec::EncodeWithResidual(CodecKey(), elements, expected_residual,
                                                        expected, scratch_));
      EXPECT_EQ(out, expected);
      kernels::ExpectSameBits(residual, expected_residual);
    }
  }
}

TEST_P(Int8, StartsTheResidualAgainAfterAnOverflow) {
  std::vector<float> elements(600, 1.0f), residual(600, 0.25f);
  elements[500] = residual[500] = Limits::max();
  auto expected_residual = residual;
  std::vector<std::byte> out(Int8Bytes(600)), expected(Int8Bytes(600));
  EXPECT_EQ(codec_.EncodeWithResidual(CodecKey(), elements, residual, out, scratch_), out.size());
  codec_.SegmentCodec::EncodeWithResidual(CodecKey(), elements, expected_residual, expected,
                                          scratch_);
  EXPECT_EQ(out, expected);
  kernels::ExpectSameBits(residual, expected_residual);
}

TEST_P(Int8, RefusesOtherSizesAndScalesThatNoEncoderWrites) {
  const auto good = Encoded(Random(300, 6));
  std::vector<float> elements(300);
  for (size_t size = 0; size < good.size(); ++size) {
    const auto cut = std::span(good).first(size);
    EXPECT_FALSE(codec_.Decode(cut, DecodeTo::kStore, elements)) << size;
  }
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(codec_.Decode(longer, DecodeTo::kStore, elements));
  const float bad[] = {0.0f,
                       -0.0f,
                       -1.0f,
                       0.5f * Limits::min(),
                       std::nextafter(kLargestScale, Limits::max()),
                       Limits::infinity(),
                       -Limits::infinity(),
                       Limits::quiet_NaN()};
  for (const float scale : bad) {
    for (const size_t group : {0, 1}) {
      auto bytes = good;
      std::memcpy(bytes.data() + group * sizeof(float), &scale, sizeof(scale));
      for (const DecodeTo to : {DecodeTo::kStore, DecodeTo::kAdd, DecodeTo::kSubtract}) {
        EXPECT_FALSE(codec_.Decode(bytes, to, elements)) << scale << " of group " << group;
      }
    }
  }
}

TEST_P(Int8, DecodesAnyBytesToFiniteNumbersWhereTheScaleIsValid) {
  std::vector<std::byte> encoded(Int8Bytes(256));
  std::memcpy(encoded.data(), &kLargestScale, sizeof(kLargestScale));
  for (size_t i = 0; i < 256; ++i) encoded[sizeof(float) + i] = std::byte(i);
  const auto decoded = Decoded(encoded, 256);
  for (size_t i = 0; i < 256; ++i) ASSERT_TRUE(std::isfinite(decoded[i])) << i;
}

TEST_P(Int8, WeightsHaveTheBytesOfGradientsWhereTheyAreFinite) {
  for (const size_t n : kSizes) {
    const auto weights = Random(n, 7);
    std::vector<std::byte> encoded(Int8Bytes(n));
    EncodeInt8Weights(weights, encoded);
    EXPECT_EQ(encoded, Encoded(weights));
    std::vector<float> decoded(n);
    DecodeInt8Weights(encoded, decoded);
    kernels::ExpectSameBits(decoded, RoundTrip(weights));
  }
}

TEST_P(Int8, WeightsThatAreNotFiniteDecodeToNaNsInTheirGroupAlone) {
  for (const float bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    for (const size_t at : {0, 100, 255, 256, 300, 511, 512, 599}) {
      auto weights = Random(600, 8);
      const auto undisturbed = RoundTrip(weights);
      weights[at] = bad;
      std::vector<std::byte> encoded(Int8Bytes(600));
      EncodeInt8Weights(weights, encoded);
      std::vector<float> decoded(600);
      DecodeInt8Weights(encoded, decoded);
      for (size_t i = 0; i < 600; ++i) {
        if (i / kInt8Group == at / kInt8Group) {
          ASSERT_TRUE(std::isnan(decoded[i])) << i;
        } else {
          ASSERT_EQ(decoded[i], undisturbed[i]) << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Int8, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) {
                           return std::string(hwy::TargetName(target.param));
                         });

}  // namespace
}  // namespace tug
