// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_KERNEL_TEST_SUPPORT_H_
#define TUG_KERNELS_REFERENCE_KERNEL_TEST_SUPPORT_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/cpu/thread_pool.h"
#include "base/philox.h"
#include "gtest/gtest.h"
#include "kernels/bf16.h"
#include "kernels/reference/bf16_ref.h"

namespace tug::kernels {

// Sizes at which every kernel is compared with its reference: zero, one, around a vector, a large
// odd one.
inline constexpr int64_t kTestSizes[] = {0, 1, 31, 32, 33, 1023};

// n uniform values in (-range, range), a function of seed.
inline std::vector<float> RandomFloats(int64_t n, uint32_t seed, float range = 1.0f) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const auto words = Philox4x32({static_cast<uint32_t>(i), 0, 0, 0}, {seed, 0});
    values[i] = (2.0f * UniformFromBits(words[0]) - 1.0f) * range;
  }
  return values;
}

inline std::vector<int32_t> RandomIndices(int64_t n, uint32_t seed, int32_t limit) {
  std::vector<int32_t> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const auto words = Philox4x32({static_cast<uint32_t>(i), 1, 0, 0}, {seed, 0});
    values[i] = static_cast<int32_t>(words[0] % static_cast<uint32_t>(limit));
  }
  return values;
}

inline double ToDouble(double x) { return x; }
inline double ToDouble(Bf16 x) { return FloatFromBf16Ref(x); }

template <typename T>
std::vector<double> ToDouble(const std::vector<T>& values) {
  std::vector<double> wide;
  wide.reserve(values.size());
  for (const T value : values) wide.push_back(ToDouble(value));
  return wide;
}

// The values as elements of type T, rounded.
template <typename T>
std::vector<T> As(const std::vector<float>& values) {
  if constexpr (std::is_same_v<T, float>) {
    return values;
  } else {
    std::vector<T> rounded;
    rounded.reserve(values.size());
    for (const float value : values) rounded.push_back(Bf16FromFloatRef(value));
    return rounded;
  }
}

// Relative error that rounding a result to T adds: half a unit in the last place.
template <typename T>
inline constexpr double kRounding = std::is_same_v<T, Bf16> ? 0x1p-8 : 0.0;

// Puts rows of `width` elements `stride` elements apart, with NaNs between them.
template <typename T>
std::vector<T> WithStride(const std::vector<T>& rows, int64_t width, int64_t stride) {
  if (stride == width) return rows;
  const int64_t n = static_cast<int64_t>(rows.size()) / width;
  const T nan = As<T>({std::numeric_limits<float>::quiet_NaN()})[0];
  std::vector<T> apart(static_cast<size_t>(n * stride), nan);
  for (int64_t i = 0; i < n * width; ++i) apart[i / width * stride + i % width] = rows[i];
  return apart;
}
// Inverse of WithStride. Fails if a NaN between rows was overwritten.
template <typename T>
std::vector<T> WithoutStride(const std::vector<T>& apart, int64_t width, int64_t stride) {
  std::vector<T> rows;
  for (int64_t i = 0; i < static_cast<int64_t>(apart.size()); ++i) {
    if (i % stride < width) {
      rows.push_back(apart[i]);
    } else {
      EXPECT_TRUE(std::isnan(ToDouble(apart[i]))) << "written behind row " << i / stride;
    }
  }
  return rows;
}

// Prepends `offset` zeros: the values start off the boundary of a vector.
template <typename T>
std::vector<T> Behind(int64_t offset, std::vector<T> values) {
  values.insert(values.begin(), static_cast<size_t>(offset), T());
  return values;
}
// Inverse of Behind. Fails if a zero was overwritten.
template <typename T>
std::vector<T> Without(int64_t offset, std::vector<T> values) {
  for (int64_t i = 0; i < offset; ++i) EXPECT_EQ(values[i], T());
  values.erase(values.begin(), values.begin() + offset);
  return values;
}

// |actual - expected| <= absolute + relative |expected|, for every element; also fails on NaN.
template <typename T>
void ExpectClose(const std::vector<T>& actual, const std::vector<double>& expected, double absolute,
                 double relative) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const double value = ToDouble(actual[i]);
    const double error = std::abs(value - expected[i]);
    ASSERT_TRUE(error <= absolute + relative * std::abs(expected[i]))
        << "element " << i << " of " << actual.size() << ": " << value << ", expected "
        << expected[i];
  }
}

// Byte-wise equality, which includes NaNs and signs of zero.
inline void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  if (a.empty()) return;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}
inline void ExpectSameBits(const std::vector<Bf16>& a, const std::vector<Bf16>& b) {
  EXPECT_EQ(a, b);
}

// d loss / d x by central differences, in double: the expected result of a reference's backward
// pass.
inline std::vector<double> FiniteDifferences(
    std::vector<double> x, const std::function<double(const std::vector<double>&)>& loss,
    double h = 1e-5) {
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + h;
    const double above = loss(x);
    x[i] = at - h;
    const double below = loss(x);
    x[i] = at;
    gradient[i] = (above - below) / (2 * h);
  }
  return gradient;
}

// Fixture for an operation with one contract on the CPU and on a GPU: OnCpu here, OnGpu in
// cuda_test_support.h. Put copies an array to where kernels can access it, Run calls a kernel. A
// result must have the same bits in each of kRuns runs.
class OnCpu : public testing::Test {
 protected:
  static constexpr int kRuns = 3;  // on 1, 2, ... kRuns threads

  template <typename T>
  class Array {
   public:
    explicit Array(std::vector<T> values) : values_(std::move(values)) {}
    T* data() const { return values_.data(); }
    std::vector<T> Read() const { return values_; }

   private:
    mutable std::vector<T> values_;
  };
  template <typename T>
  Array<T> Put(std::vector<T> values) {
    return Array<T>(std::move(values));
  }
  void BeginRun(int run) { pool_ = std::make_unique<ThreadPool>(run + 1); }
  ThreadPool& pool() { return *pool_; }
  template <typename Args>
  void Run(void (*kernel)(ThreadPool&, const Args&), const Args& args) {
    kernel(pool(), args);
  }

 private:
  std::unique_ptr<ThreadPool> pool_ = std::make_unique<ThreadPool>(1);
};

inline double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_KERNEL_TEST_SUPPORT_H_
