// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/sum_cuda.h"

#include <algorithm>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/kernel_test_support.h"
#include "kernels/sum.h"

namespace tug::kernels::cuda {
namespace {

class SumCuda : public CudaTest {
 protected:
  double RunSumOfSquares(const std::vector<float>& x, int64_t offset = 0) {
    const OnDevice x_gpu(x, stream());
    const OnDevice sum(std::vector<double>{-1}, stream());
    const absl::Status status = SumOfSquares(
        x_gpu.data() + offset, static_cast<int64_t>(x.size()) - offset, sum.data(), stream());
    EXPECT_TRUE(status.ok()) << status;
    return sum.Read()[0];
  }
};

TEST_F(SumCuda, AddsWithTheBitsOfTheCpuAtEverySizeAndOffset) {
  for (const int64_t n : {0, 1, 31, 32, 33, 1023, 70000}) {
    for (const int64_t offset : {0, 1, 3}) {
      const auto src = RandomFloats(n + offset, 1);
      auto expected = RandomFloats(n + offset, 2);
      const OnDevice src_gpu(src, stream()), acc(expected, stream());
      const OnDevice all_finite(std::vector<uint32_t>{1}, stream());
      EXPECT_TRUE(kernels::AddAndCheck(src.data() + offset, expected.data() + offset, n));
      const absl::Status status =
          AddAndCheck(src_gpu.data() + offset, acc.data() + offset, n, all_finite.data(), stream());
      ASSERT_TRUE(status.ok()) << status;
      ExpectSameBits(acc.Read(), expected);
      EXPECT_EQ(all_finite.Read()[0], 1u);
    }
  }
}

TEST_F(SumCuda, NoticesEveryElementThatIsNotFinite) {
  using Limits = std::numeric_limits<float>;
  const OnDevice acc(std::vector<float>(40), stream());
  for (const float bad :
       {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::quiet_NaN()}) {
    for (int64_t at = 0; at < 40; ++at) {
      std::vector<float> values(40, 1.0f);
      values[at] = bad;
      const OnDevice src(values, stream());
      for (const bool adds : {false, true}) {
        const OnDevice before(std::vector<uint32_t>{7}, stream());
        const OnDevice after(std::vector<uint32_t>{7}, stream());
        const auto look = [&](int64_t n, uint32_t* all_finite) {
          return adds ? AddAndCheck(src.data(), acc.data(), n, all_finite, stream())
                      : AllFinite(src.data(), n, all_finite, stream());
        };
        ASSERT_TRUE(look(at, before.data()).ok());
        ASSERT_TRUE(look(40, after.data()).ok());
        ASSERT_TRUE(look(at, after.data()).ok());  // which leaves `after` at 0
        ASSERT_EQ(before.Read()[0], 7u) << bad << " at " << at;
        ASSERT_EQ(after.Read()[0], 0u) << bad << " at " << at;
      }
    }
  }
  const OnDevice edge(
      std::vector<float>{Limits::max(), Limits::lowest(), Limits::denorm_min(), -0.0f}, stream());
  const OnDevice all_finite(std::vector<uint32_t>{1}, stream());
  ASSERT_TRUE(AllFinite(edge.data(), 4, all_finite.data(), stream()).ok());
  EXPECT_EQ(all_finite.Read()[0], 1u);
}

// FP64 sums of at most 2^20 squares: 32 terms per lane, 5 levels, then the tree's 10; the error is
// within 50 * 2^-53 = 6e-15 of the sum.
TEST_F(SumCuda, SumOfSquaresMatchesExactSum) {
  for (const int64_t n : {0, 1, 31, 32, 33, 1023, 1024, 1025, 5000, 262144, 1024 * 1024 + 5}) {
    const auto x = RandomFloats(n, 1, 100.0f);
    long double exact = 0;
    for (const float value : x) exact += static_cast<long double>(value) * value;
    EXPECT_NEAR(RunSumOfSquares(x), static_cast<double>(exact), 1e-14 * static_cast<double>(exact))
        << n;
  }
}

TEST_F(SumCuda, SumsOfSquaresOfRangesFoldToSumOfWhole) {
  for (const int64_t n : {1, 1024, 5000, 300001}) {
    const auto x = RandomFloats(n, 3);
    const double whole = RunSumOfSquares(x);
    for (const int64_t range : {1024, 16384, 131072}) {
      if (range < n / 100) continue;
      std::vector<double> sums;
      for (int64_t i = 0; i < n; i += range) {
        sums.push_back(RunSumOfSquares({x.begin() + i, x.begin() + std::min(n, i + range)}));
      }
      EXPECT_EQ(TreeFold(sums), whole) << n << " in ranges of " << range;
    }
  }
}

TEST_F(SumCuda, SumOfSquaresHasSameBitsAtAnyAlignment) {
  const auto x = RandomFloats(3000, 4);
  const double at_zero = RunSumOfSquares(x);
  for (const int64_t offset : {1, 2, 7}) {
    auto moved = x;
    moved.insert(moved.begin(), static_cast<size_t>(offset), 5.0f);
    EXPECT_EQ(RunSumOfSquares(moved, offset), at_zero);
  }
}

}  // namespace
}  // namespace tug::kernels::cuda
