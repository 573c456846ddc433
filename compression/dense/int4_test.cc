// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/int4.h"

#include "compression/dense/dense_test_support.h"
#include "compression/dense/levels_ref.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(Int4, RoundsToTheNearestLevelAsTheReference) {
  OnEveryInstructionSet([] {
    for (const int64_t n : kDenseTestSizes) {
      const auto x = TestGradient(n, 1);
      ASSERT_EQ(Encoding(Int4Codec(), x), EncodeLevelsRef(x, Int4Codec::kGroup, 3, nullptr)) << n;
      ExpectDecodesWithin(Int4Codec(), x, Int4Codec::kGroup, 3, 0.5f);
      ExpectDecodesAlike(Int4Codec(), x);
    }
  });
}

TEST(Int4, KeepsErrorFeedbackInOnePassAsInThree) {
  OnEveryInstructionSet([] {
    for (const int64_t n : kDenseTestSizes) ExpectResidualAsInThreePasses(Int4Codec(), n);
  });
}

TEST(Int4, EncodesWhatIsFinite) {
  for (const int64_t n : {1, 65, 1025}) ExpectEncodesOnlyFinite(Int4Codec(), n);
  ExpectEncodesExtremes(Int4Codec());
}

TEST(Int4, RefusesOtherLengthsAndNormsThatAreNoMagnitude) {
  for (const int64_t n : {1, 65, 1025}) ExpectRefusesOtherLengths(Int4Codec(), n);
  ExpectRefusesOtherNorms(Int4Codec(), TestGradient(129, 1), 36);
}

TEST(Int4, TakesFourBitsAnElementAndANormAGroup) {
  EXPECT_EQ(Int4Codec().MaxEncodedBytes(262144), 147456u);  // 14.06% of FP32
}

}  // namespace
}  // namespace tug
