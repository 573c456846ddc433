// SPDX-License-Identifier: Apache-2.0
#include "kernels/bf16.h"

#include <bit>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/reference/bf16_ref.h"
#include "kernels/reference/kernel_test_support.h"
#include "kernels/sum.h"

namespace tug::kernels {
namespace {

using Limits = std::numeric_limits<float>;

uint16_t Rounded(float x) {
  Bf16 result{};
  Bf16FromFloat(&x, &result, 1);
  return static_cast<uint16_t>(result);
}

uint16_t Rounded(uint32_t bits) { return Rounded(std::bit_cast<float>(bits)); }

TEST(Bf16FromFloat, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(Rounded(0x3F800000u), 0x3F80);  // 1
  EXPECT_EQ(Rounded(0x3F807FFFu), 0x3F80);
  EXPECT_EQ(Rounded(0x3F808000u), 0x3F80);  // a tie: down, to even
  EXPECT_EQ(Rounded(0x3F808001u), 0x3F81);
  EXPECT_EQ(Rounded(0x3F818000u), 0x3F82);  // a tie: up, to even
  EXPECT_EQ(Rounded(0xBF818000u), 0xBF82);
  EXPECT_EQ(Rounded(0x3FFF8000u), 0x4000);  // carries into the exponent
}

TEST(Bf16FromFloat, KeepsTheSignOfZeroAndDenormals) {
  EXPECT_EQ(Rounded(0.0f), 0x0000);
  EXPECT_EQ(Rounded(-0.0f), 0x8000);
  EXPECT_EQ(Rounded(0x00000001u), 0x0000);
  EXPECT_EQ(Rounded(0x80000001u), 0x8000);
  EXPECT_EQ(Rounded(0x00008000u), 0x0000);
  EXPECT_EQ(Rounded(0x00018000u), 0x0002);
  EXPECT_EQ(Rounded(0x00412345u), 0x0041);
  EXPECT_EQ(Rounded(0x007FFFFFu), 0x0080);  // to the smallest normal number
}

TEST(Bf16FromFloat, OverflowsToInfinityAndKeepsInfinitiesAndNaNs) {
  EXPECT_EQ(Rounded(0x7F7F7FFFu), 0x7F7F);  // the largest that still rounds down
  EXPECT_EQ(Rounded(0x7F7F8000u), 0x7F80);
  EXPECT_EQ(Rounded(Limits::max()), 0x7F80);
  EXPECT_EQ(Rounded(Limits::lowest()), 0xFF80);
  EXPECT_EQ(Rounded(Limits::infinity()), 0x7F80);
  EXPECT_EQ(Rounded(-Limits::infinity()), 0xFF80);
  EXPECT_EQ(Rounded(0x7FC00000u), 0x7FC0);
  EXPECT_EQ(Rounded(0x7F800001u), 0x7FC0);  // a payload that truncation would lose
  EXPECT_EQ(Rounded(0x7FFFFFFFu), 0x7FFF);  // rounding would carry into the sign
  EXPECT_EQ(Rounded(0xFFFFFFFFu), 0xFFFF);
}

// Every upper half, with lower halves around its ties.
TEST(Bf16FromFloat, MatchesTheReferenceOnEveryUpperHalf) {
  std::vector<float> src;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      src.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  std::vector<Bf16> dst(src.size());
  Bf16FromFloat(src.data(), dst.data(), static_cast<int64_t>(src.size()));
  for (size_t i = 0; i < src.size(); ++i) {
    ASSERT_EQ(dst[i], Bf16FromFloatRef(src[i])) << std::hex << std::bit_cast<uint32_t>(src[i]);
  }
}

TEST(Bf16, ConvertsAtEverySizeAndOffset) {
  for (const int64_t n : kTestSizes) {
    for (const int64_t offset : {0, 1, 3}) {
      const auto src = RandomFloats(n + offset, 1);
      std::vector<Bf16> narrow(n + offset + 1, Bf16{7});
      Bf16FromFloat(src.data() + offset, narrow.data() + offset, n);
      EXPECT_EQ(narrow[n + offset], Bf16{7}) << "wrote beyond the end";
      std::vector<float> wide(n + 1, 7.0f);
      FloatFromBf16(narrow.data() + offset, wide.data(), n);
      EXPECT_EQ(wide[n], 7.0f) << "wrote beyond the end";
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(narrow[i + offset], Bf16FromFloatRef(src[i + offset])) << i;
        ASSERT_EQ(wide[i], FloatFromBf16Ref(narrow[i + offset])) << i;
      }
    }
  }
}

TEST(FloatFromBf16, IsExactForEveryValue) {
  std::vector<Bf16> src(0x10000);
  for (uint32_t i = 0; i < src.size(); ++i) src[i] = static_cast<Bf16>(i);
  std::vector<float> wide(src.size()), expected;
  for (const Bf16 x : src) expected.push_back(FloatFromBf16Ref(x));
  FloatFromBf16(src.data(), wide.data(), 0x10000);
  ExpectSameBits(wide, expected);
}

TEST(AddAndCheckBf16, HasTheBitsOfWideningFirst) {
  for (const int64_t n : kTestSizes) {
    for (const int64_t offset : {0, 1, 3}) {
      const auto values = RandomFloats(n + offset, 1);
      std::vector<Bf16> src(n + offset);
      Bf16FromFloat(values.data(), src.data(), n + offset);
      std::vector<float> wide(n);
      FloatFromBf16(src.data() + offset, wide.data(), n);
      auto acc = RandomFloats(n + 1, 2), expected = acc;
      std::vector<float> copy(n + 1, 7.0f);
      EXPECT_TRUE(AddAndCheck(wide.data(), expected.data(), n));
      EXPECT_TRUE(AddAndCheckBf16(src.data() + offset, acc.data(), n));
      EXPECT_TRUE(CopyAndCheckBf16(src.data() + offset, copy.data(), n));
      EXPECT_EQ(copy[n], 7.0f) << "wrote beyond the end";
      copy.pop_back();
      ExpectSameBits(acc, expected);
      ExpectSameBits(copy, wide);
    }
  }
}

TEST(AddAndCheckBf16, NoticesEveryElementThatIsNotFinite) {
  for (const uint16_t bad : {0x7F80, 0xFF80, 0x7FC0, 0xFFC0, 0x7F81}) {
    for (int64_t at = 0; at < 100; ++at) {
      std::vector<Bf16> src(100, Bf16{0x3F80});
      std::vector<float> acc(100, 0.0f);
      src[at] = Bf16{bad};
      ASSERT_FALSE(AddAndCheckBf16(src.data(), acc.data(), 100)) << bad << " at " << at;
      ASSERT_FALSE(CopyAndCheckBf16(src.data(), acc.data(), 100)) << bad << " at " << at;
      ASSERT_TRUE(CopyAndCheckBf16(src.data(), acc.data(), at));
    }
  }
  const std::vector<Bf16> edge = {Bf16{0x7F7F}, Bf16{0xFF7F}, Bf16{0x0001},
                                  Bf16{0x8000}};  // all finite
  std::vector<float> acc(4, Limits::max());
  EXPECT_TRUE(AddAndCheckBf16(edge.data(), acc.data(), 4));
}

}  // namespace
}  // namespace tug::kernels
