// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/qsgd.h"

#include <bit>

#include "compression/dense/dense_test_support.h"
#include "compression/dense/levels_ref.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr size_t kGroup = QsgdSegmentCodec::kGroup;

QsgdSegmentCodec WithLevels(uint32_t levels) {
  PushCodecConfig config;
  config.mutable_qsgd()->set_levels(levels);
  return QsgdSegmentCodec(config);
}

TEST(Qsgd, DrawsAsTheReferenceWithEveryNumberOfLevels) {
  OnEveryInstructionSet([] {
    for (int bits = 1; bits <= 7; ++bits) {
      const uint32_t levels = (1u << bits) - 1;
      for (const int64_t n : kDenseTestSizes) {
        const auto x = TestGradient(n, 1);
        auto expected = EncodeLevelsRef(x, kGroup, bits, &kTestKey);
        expected.insert(expected.begin(), static_cast<std::byte>(levels));
        ASSERT_EQ(Encoding(WithLevels(levels), x), expected) << n << ", levels " << levels;
        ExpectDecodesWithin(WithLevels(levels), x, kGroup, bits, 1.0f);
        ExpectDecodesAlike(WithLevels(levels), x);
      }
    }
  });
}

TEST(Qsgd, IsRightOnAverage) {
  const auto x = TestGradient(200, 1);
  for (const uint32_t levels : {1u, 7u, 127u}) {
    ExpectUnbiased(WithLevels(levels), x, [&](size_t i) { return NormRef(x, kGroup, i) / levels; });
  }
}

TEST(Qsgd, DrawsByItsKey) { ExpectDrawsByKey(WithLevels(7)); }

TEST(Qsgd, EncodesWhatIsFinite) {
  for (const int64_t n : {1, 65, 1025}) ExpectEncodesOnlyFinite(WithLevels(7), n);
  for (const uint32_t levels : {1u, 7u, 127u}) ExpectEncodesExtremes(WithLevels(levels));
}

TEST(Qsgd, DecodesWithTheLevelsOfTheEncoding) {
  const auto x = TestGradient(1000, 1);
  const auto encoding = Encoding(WithLevels(31), x);
  EXPECT_EQ(Decoded(QsgdSegmentCodec(PushCodecConfig()), encoding, x.size()),
            Decoded(WithLevels(31), encoding, x.size()));
}

TEST(Qsgd, RefusesOtherLengthsLevelsAndNorms) {
  const auto x = TestGradient(1000, 1);
  for (const int64_t n : {1, 65, 1025}) ExpectRefusesOtherLengths(WithLevels(7), n);
  ExpectRefusesOtherNorms(WithLevels(7), x, 1);
  std::vector<float> to(x.size());
  for (int levels = 0; levels < 256; ++levels) {
    auto encoding = Encoding(WithLevels(7), x);
    encoding[0] = static_cast<std::byte>(levels);
    EXPECT_EQ(WithLevels(7).Decode(encoding, DecodeTo::kStore, to), levels == 7) << levels;
  }
}

TEST(Qsgd, TakesTheBitsOfALevelAndASignAnElement) {
  EXPECT_EQ(WithLevels(7).MaxEncodedBytes(262144), 133121u);  // 12.70% of FP32
  EXPECT_EQ(WithLevels(1).MaxEncodedBytes(262144), 67585u);
}

}  // namespace
}  // namespace tug
