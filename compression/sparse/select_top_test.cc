// SPDX-License-Identifier: Apache-2.0
#include "compression/sparse/select_top.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace tug {
namespace {

// Reference: sorts all elements.
std::vector<uint32_t> SelectTopRef(const std::vector<float>& x, size_t count) {
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < x.size(); ++i) {
    if (x[i] != 0) indices.push_back(i);
  }
  std::stable_sort(indices.begin(), indices.end(),
                   [&](uint32_t a, uint32_t b) { return std::abs(x[a]) > std::abs(x[b]); });
  indices.resize(std::min(count, indices.size()));
  std::sort(indices.begin(), indices.end());
  return indices;
}

std::vector<float> Elements(size_t n, int kind) {
  std::mt19937_64 random(n + static_cast<size_t>(kind));
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) {
    const float z = normal(random);
    switch (kind) {
      case 0:
        x[i] = z;
        break;
      case 1:
        x[i] = 0.5f;  // all equal
        break;
      case 2:
        x[i] = static_cast<float>(static_cast<int>(z));  // a few values, ties, zeros
        break;
      case 3:
        x[i] = z * 1e-42f;  // denormals
        break;
      case 4:
        x[i] = i % 100 == 7 ? z * 1e6f : z;  // large in one column
        break;
      case 5:
        x[i] = i == n / 3 ? -1.0f : 0.0f;
        break;
      case 6:
        x[i] = std::exp(15 * z);
        break;
      case 7:
        x[i] = i > n - n / 64 ? 1.0f : 1e-3f * z;  // large where a sample reads few
        break;
      default:
        x[i] = i % 2 == 0 ? 0.0f : -0.0f;
    }
  }
  return x;
}
constexpr int kKinds = 9;

class SelectTopTest : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

TEST_P(SelectTopTest, TakesWhatSortingTakes) {
  CodecScratch scratch;
  for (const size_t n : {1, 2, 31, 33, 1000, 16384, 16391, 70001}) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const std::vector<float> x = Elements(n, kind);
      for (const double density : {1e-4, 0.01, 0.1, 0.5, 1.0}) {
        const size_t count = std::max<size_t>(1, static_cast<size_t>(density * n));
        const auto top = SelectTop(x, count, scratch);
        ASSERT_TRUE(top.has_value());
        ASSERT_EQ(std::vector(top->begin(), top->end()), SelectTopRef(x, count))
            << n << " elements of kind " << kind << ", " << count;
      }
    }
  }
}

TEST_P(SelectTopTest, SelectsOfASum) {
  CodecScratch scratch;
  for (const size_t n : {1, 33, 70001}) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const std::vector<float> x = Elements(n, kind);
      std::vector<float> residual = Elements(n, 0);
      std::vector<float> sum(n);
      for (size_t i = 0; i < n; ++i) sum[i] = x[i] + residual[i];
      const size_t count = n / 100 + 1;
      const auto top = AddAndSelectTop(x, residual, count, scratch);
      ASSERT_TRUE(top.has_value());
      ASSERT_EQ(residual, sum);
      ASSERT_EQ(std::vector(top->begin(), top->end()), SelectTopRef(sum, count));
    }
  }
}

TEST_P(SelectTopTest, TakesAboutAsManyOfTheLargestHoweverTheyLie) {
  CodecScratch scratch;
  for (const size_t n : {1, 33, 1000, 16391, 70001}) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const std::vector<float> x = Elements(n, kind);
      const auto zeros = static_cast<size_t>(std::count(x.begin(), x.end(), 0.0f));
      for (const double density : {1e-4, 0.01, 0.25, 1.0}) {
        const size_t count = std::max<size_t>(1, static_cast<size_t>(density * n));
        const auto top = SelectAbout(x, count, scratch);
        ASSERT_TRUE(top.has_value());
        EXPECT_GE(top->size(), std::min((count + 1) / 2, n - zeros)) << n << " kind " << kind;
        EXPECT_LE(top->size(), MostAbout(count)) << n << " kind " << kind;
        ASSERT_EQ(std::vector(top->begin(), top->end()), SelectTopRef(x, top->size()))
            << n << " elements of kind " << kind << ", " << count;
      }
    }
  }
}

TEST_P(SelectTopTest, SelectsNoneIfAnElementIsNotFinite) {
  CodecScratch scratch;
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const size_t at : {0, 16384, 70000}) {
      std::vector<float> x = Elements(70001, 0);
      x[at] = -bad;
      EXPECT_FALSE(SelectTop(x, 700, scratch).has_value());
      std::vector<float> residual(x.size(), 3e38f);
      EXPECT_FALSE(AddAndSelectTop(residual, residual, 1, scratch).has_value());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SelectTopTest, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

}  // namespace
}  // namespace tug
