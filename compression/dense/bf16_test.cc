// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/bf16.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "compression/dense/dense_test_support.h"
#include "gtest/gtest.h"
#include "kernels/reference/bf16_ref.h"

namespace tug {
namespace {

using Limits = std::numeric_limits<float>;

constexpr float kLargestBf16 = 0x1.FEp127f;

std::vector<kernels::Bf16> EncodeRef(const std::vector<float>& x) {
  std::vector<kernels::Bf16> out;
  for (const float value : x) {
    out.push_back(kernels::Bf16FromFloatRef(std::clamp(value, -kLargestBf16, kLargestBf16)));
  }
  return out;
}

TEST(Bf16Codec, RoundsEachElementAsTheReference) {
  OnEveryInstructionSet([] {
    for (const int64_t n : kDenseTestSizes) {
      auto x = TestGradient(n, 1);
      x.back() = Limits::lowest();
      const auto encoding = Encoding(Bf16Codec(), x);
      const auto expected = EncodeRef(x);
      ASSERT_EQ(encoding.size(), 2 * x.size());
      ASSERT_EQ(std::memcmp(encoding.data(), expected.data(), encoding.size()), 0) << n;
      const auto decoded = Decoded(Bf16Codec(), encoding, x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(decoded[i], kernels::FloatFromBf16Ref(expected[i])) << i << " of " << n;
      }
      ExpectDecodesAlike(Bf16Codec(), x);
    }
  });
}

TEST(Bf16Codec, KeepsErrorFeedbackInOnePassAsInThree) {
  OnEveryInstructionSet([] {
    for (const int64_t n : kDenseTestSizes) ExpectResidualAsInThreePasses(Bf16Codec(), n);
  });
}

TEST(Bf16Codec, EncodesWhatIsFinite) {
  for (const int64_t n : {1, 65, 1025}) ExpectEncodesOnlyFinite(Bf16Codec(), n);
  ExpectEncodesExtremes(Bf16Codec());
}

TEST(Bf16Codec, RefusesOtherLengthsAndNumbersThatAreNotFinite) {
  for (const int64_t n : {1, 65, 1025}) ExpectRefusesOtherLengths(Bf16Codec(), n);
  std::vector<float> to(65);
  for (const uint16_t bad : {0x7F80, 0xFF80, 0x7FC0}) {
    for (const DecodeTo how : {DecodeTo::kStore, DecodeTo::kAdd, DecodeTo::kSubtract}) {
      auto encoding = Encoding(Bf16Codec(), TestGradient(65, 1));
      std::memcpy(encoding.data() + 128, &bad, sizeof(bad));
      EXPECT_FALSE(Bf16Codec().Decode(encoding, how, to)) << bad;
    }
  }
}

}  // namespace
}  // namespace tug
