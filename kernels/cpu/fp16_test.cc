// SPDX-License-Identifier: Apache-2.0
#include "kernels/fp16.h"

#include <bit>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/fp16_ref.h"

namespace tug::kernels {
namespace {

std::vector<Fp16> Narrow(const std::vector<float>& src) {
  std::vector<Fp16> dst(src.size());
  Fp16FromFloat(src.data(), dst.data(), static_cast<int64_t>(src.size()));
  return dst;
}

uint16_t Rounded(float x) { return static_cast<uint16_t>(Narrow({x})[0]); }

std::vector<Fp16> AllFp16() {
  std::vector<Fp16> all;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) all.push_back(Fp16(static_cast<uint16_t>(bits)));
  return all;
}

TEST(Fp16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(Rounded(1.0f), 0x3C00);
  EXPECT_EQ(Rounded(-2.0f), 0xC000);
  EXPECT_EQ(Rounded(1.0f + std::ldexp(1.0f, -11)), 0x3C00);  // a tie: down, to even
  EXPECT_EQ(Rounded(1.0f + 3 * std::ldexp(1.0f, -11)), 0x3C02);
  EXPECT_EQ(Rounded(65504.0f), 0x7BFF);
  EXPECT_EQ(Rounded(65519.996f), 0x7BFF);
  EXPECT_EQ(Rounded(65520.0f), 0x7C00);
  EXPECT_EQ(Rounded(-INFINITY), 0xFC00);
  EXPECT_EQ(Rounded(NAN), 0x7E00);
  EXPECT_EQ(Rounded(-0.0f), 0x8000);
  EXPECT_EQ(Rounded(std::ldexp(1.0f, -24)), 0x0001);
  EXPECT_EQ(Rounded(std::ldexp(1.0f, -25)), 0x0000);  // a tie
  EXPECT_EQ(Rounded(std::ldexp(3.0f, -25)), 0x0002);  // a tie
}

TEST(Fp16, WidensEveryNumberExactly) {
  const std::vector<Fp16> all = AllFp16();
  std::vector<float> wide(all.size());
  FloatFromFp16(all.data(), wide.data(), static_cast<int64_t>(all.size()));
  for (size_t i = 0; i < all.size(); ++i) {
    const float expected = FloatFromFp16Ref(all[i]);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(wide[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(expected)) << i;
    }
  }
}

// Every FP16, the midpoint between it and the next, and the floats adjacent to both.
TEST(Fp16, MatchesTheReferenceAroundEveryNumberAndTie) {
  std::vector<float> src;
  for (const Fp16 x : AllFp16()) {
    const uint32_t bits = std::bit_cast<uint32_t>(FloatFromFp16Ref(x));
    const auto next = static_cast<uint16_t>(static_cast<uint16_t>(x) + 1);
    const double middle = (double{FloatFromFp16Ref(x)} + double{FloatFromFp16Ref(Fp16(next))}) / 2;
    for (const uint32_t near : {bits, std::bit_cast<uint32_t>(static_cast<float>(middle))}) {
      for (const uint32_t shifted : {near - 1, near, near + 1}) {
        src.push_back(std::bit_cast<float>(shifted));
      }
    }
  }
  const std::vector<Fp16> narrow = Narrow(src);
  for (size_t i = 0; i < src.size(); ++i) {
    ASSERT_EQ(narrow[i], Fp16FromFloatRef(src[i])) << std::hex << std::bit_cast<uint32_t>(src[i]);
  }
}

TEST(Fp16, LastElementsAreRoundedLikeTheOthers) {
  for (const size_t n : {0, 1, 7, 8, 9, 31, 32, 33, 1023}) {
    std::vector<float> src;
    for (size_t i = 0; i < n; ++i) src.push_back(0.1f * static_cast<float>(i) - 3);
    std::vector<Fp16> dst(n + 1, Fp16{0x1234});
    Fp16FromFloat(src.data(), dst.data(), static_cast<int64_t>(n));
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(dst[i], Fp16FromFloatRef(src[i])) << n << " " << i;
    EXPECT_EQ(dst[n], Fp16{0x1234}) << "written beyond the end";
  }
}

}  // namespace
}  // namespace tug::kernels
