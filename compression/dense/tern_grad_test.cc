// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/tern_grad.h"

#include "compression/dense/dense_test_support.h"
#include "compression/dense/levels_ref.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr size_t kGroup = TernGradCodec::kGroup;

TEST(TernGrad, DrawsAsTheReference) {
  OnEveryInstructionSet([] {
    for (const int64_t n : kDenseTestSizes) {
      const auto x = TestGradient(n, 1);
      ASSERT_EQ(Encoding(TernGradCodec(), x), EncodeLevelsRef(x, kGroup, 1, &kTestKey)) << n;
      ExpectDecodesAlike(TernGradCodec(), x);
    }
  });
}

TEST(TernGrad, DecodesToMinusOneZeroOrOneTimesTheLargestMagnitude) {
  const auto x = TestGradient(5000, 1);
  const auto decoded = Decoded(TernGradCodec(), Encoding(TernGradCodec(), x), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    if (decoded[i] == 0) continue;
    ASSERT_EQ(decoded[i], std::copysign(NormRef(x, kGroup, i), x[i])) << i;
  }
}

TEST(TernGrad, IsRightOnAverage) {
  const auto x = TestGradient(200, 1);
  ExpectUnbiased(TernGradCodec(), x, [&](size_t i) { return NormRef(x, kGroup, i); });
}

TEST(TernGrad, DrawsByItsKey) { ExpectDrawsByKey(TernGradCodec()); }

TEST(TernGrad, EncodesWhatIsFinite) {
  for (const int64_t n : {1, 65, 5000}) ExpectEncodesOnlyFinite(TernGradCodec(), n);
  ExpectEncodesExtremes(TernGradCodec());
}

TEST(TernGrad, RefusesOtherLengthsAndNormsThatAreNoMagnitude) {
  for (const int64_t n : {1, 65, 5000}) ExpectRefusesOtherLengths(TernGradCodec(), n);
  ExpectRefusesOtherNorms(TernGradCodec(), TestGradient(5000, 1), 1028);
}

TEST(TernGrad, TakesTwoBitsAnElementAndANormAGroup) {
  EXPECT_EQ(TernGradCodec().MaxEncodedBytes(262144), 65792u);  // 6.27% of FP32
}

}  // namespace
}  // namespace tug
