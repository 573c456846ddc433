// SPDX-License-Identifier: Apache-2.0
#include "compression/low_rank/low_rank.h"

#include <limits>
#include <vector>

#include "compression/codecs/codec_test_support.h"
#include "compression/low_rank/low_rank_ref.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr MatrixShape kShapes[] = {{1, 2},     {7, 2},      {31, 7},    {33, 16},
                                   {1000, 17}, {1023, 128}, {5000, 45}, {9000, 4099}};

std::vector<double> Doubles(std::span<const float> x) { return {x.begin(), x.end()}; }

void ExpectNear(std::span<const float> x, std::span<const double> expected, double tolerance) {
  ASSERT_EQ(x.size(), expected.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], expected[i], tolerance) << i;
}

TEST(LowRank, ProductsAreNearTheReference) {
  for (const MatrixShape& shape : kShapes) {
    for (const int64_t rank : {1, 2, 3, 4, 5, 7, 8, 64}) {
      SCOPED_TRACE(testing::Message() << shape.elements << " by " << shape.columns << ", " << rank);
      const auto m = NormalElements(shape.elements, 1, 0.5f);  // scaled by 2: variance 1
      const auto q = NormalElements(rank * shape.columns, 2, 1.0f);
      const auto p = NormalElements(rank * shape.rows(), 3, 1.0f);
      std::vector<float> m_q(p.size()), m_p(q.size()), expanded(m.size());
      TimesFactor(shape, m.data(), 2.0f, q.data(), rank, m_q.data());
      TransposedTimesFactor(shape, m.data(), 2.0f, p.data(), rank, m_p.data());
      ASSERT_TRUE(
          ExpandFactors(shape, p.data(), q.data(), rank, DecodeTo::kStore, expanded.data()));
      auto doubled = m;
      for (float& x : doubled) x *= 2;
      ExpectNear(m_q, TimesFactorRef(shape, doubled, Doubles(q), rank),
                 1e-6 * static_cast<double>(shape.columns) + 1e-5);
      ExpectNear(m_p, TransposedTimesFactorRef(shape, doubled, Doubles(p), rank),
                 1e-6 * static_cast<double>(shape.rows()) + 1e-5);
      ExpectNear(expanded, ExpandFactorsRef(shape, Doubles(p), Doubles(q), rank), 1e-4);
    }
  }
}

TEST(LowRank, OrthonormalColumnsAreSoAlsoWhereTheyWereNearlyDependent) {
  constexpr int64_t kRows = 333;
  constexpr int64_t kRank = 6;
  auto p = NormalElements(kRows * kRank, 1, 3.0f);
  for (int64_t i = 0; i < kRows; ++i) {
    p[2 * kRows + i] = 2 * p[i] + 1e-3f * p[2 * kRows + i];  // nearly along the first
    p[4 * kRows + i] = p[kRows + i] * 0.37f;                 // along the second
    p[5 * kRows + i] = 0;
  }
  Orthonormalise(kRows, kRank, p.data());
  for (int64_t a = 0; a < kRank; ++a) {
    for (int64_t b = 0; b <= a; ++b) {
      const double expected = a == b && a < 4 ? 1 : 0;
      EXPECT_NEAR(Dot(p.data() + a * kRows, p.data() + b * kRows, kRows), expected, 1e-6)
          << a << " " << b;
    }
  }
  EXPECT_EQ(std::vector<float>(p.end() - 2 * kRows, p.end()), std::vector<float>(2 * kRows, 0.0f));
}

TEST(LowRank, AProductThatIsNotFiniteIsTold) {
  const MatrixShape shape{100, 7};
  for (const size_t at : {size_t{0}, size_t{14}}) {
    std::vector<float> p(15, 1.0f), q(7, 1.0f), elements(100);
    p[at] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(ExpandFactors(shape, p.data(), q.data(), 1, DecodeTo::kStore, elements.data()));
    p[at] = 3e38f;
    q[0] = 2;
    EXPECT_FALSE(ExpandFactors(shape, p.data(), q.data(), 1, DecodeTo::kAdd, elements.data()));
  }
}

TEST(LowRank, LargestBitsAreThoseOfTheSum) {
  std::vector<float> sum = {1, -2, 3}, x = {1, -7, 3};
  EXPECT_EQ(LargestMagnitudeBits(sum.data(), 3), std::bit_cast<int32_t>(3.0f));
  EXPECT_EQ(AddAndLargestBits(x.data(), sum.data(), 3), std::bit_cast<int32_t>(9.0f));
  EXPECT_EQ(sum, (std::vector<float>{2, -9, 6}));
}

}  // namespace
}  // namespace tug
