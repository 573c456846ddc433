// SPDX-License-Identifier: Apache-2.0
#include "kernels/dropout.h"

#include "gtest/gtest.h"
#include "kernels/reference/dropout_ref.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels {
namespace {

// Without bias and residual.
std::vector<float> Dropped(int64_t samples, const std::vector<float>& x, float p,
                           const DropoutKey& key) {
  ThreadPool pool(2);
  std::vector<float> y(x.size());
  DropoutAdd<float>(pool, {.samples = samples,
                           .elements_per_sample = static_cast<int64_t>(x.size()) / samples,
                           .x = x.data(),
                           .p = p,
                           .key = key,
                           .y = y.data()});
  return y;
}

constexpr DropoutKey kKey{.seed = 0x0123456789abcdef, .step = 77, .sample = 5, .site = 3};

struct Inputs {
  int64_t samples;
  int64_t elements;
  int64_t width;
  bool bias;
  bool residual;
  float p;
};

template <typename T>
std::vector<T> RunKernel(int threads, const Inputs& in) {
  ThreadPool pool(threads);
  const int64_t n = in.samples * in.elements;
  const auto x = As<T>(RandomFloats(n, 1));
  const auto bias = RandomFloats(in.width, 2);
  const auto residual = As<T>(RandomFloats(n, 3));
  std::vector<T> y(n);
  DropoutAdd<T>(pool, {in.samples, in.elements, in.width, x.data(), in.bias ? bias.data() : nullptr,
                       in.residual ? residual.data() : nullptr, in.p, kKey, y.data()});
  return y;
}

template <typename T>
void ExpectMatchesReference(const Inputs& in) {
  SCOPED_TRACE(testing::Message() << in.samples << " samples of " << in.elements << " width "
                                  << in.width << " p " << in.p);
  const int64_t n = in.samples * in.elements;
  const auto x = ToDouble(As<T>(RandomFloats(n, 1)));
  const auto bias = ToDouble(RandomFloats(in.width, 2));
  const auto residual = ToDouble(As<T>(RandomFloats(n, 3)));
  std::vector<double> expected(n);
  DropoutAddRef<double>({in.samples, in.elements, in.width, x.data(),
                         in.bias ? bias.data() : nullptr, in.residual ? residual.data() : nullptr,
                         in.p, kKey, expected.data()});
  const auto one = RunKernel<T>(1, in);
  ExpectClose(one, expected, 5e-7, 5e-7 + kRounding<T>);
  ExpectSameBits(RunKernel<T>(2, in), one);
  ExpectSameBits(RunKernel<T>(3, in), one);
}

template <typename T>
class DropoutOf : public testing::Test {};
using ElementTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(DropoutOf, ElementTypes);

TYPED_TEST(DropoutOf, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const float p : {0.0f, 0.1f, 0.9f}) {
    for (const int64_t size : kTestSizes) {
      if (size == 0) continue;
      ExpectMatchesReference<TypeParam>({3, size, size, false, false, p});
      ExpectMatchesReference<TypeParam>({2, size * 5, size, true, true, p});
      ExpectMatchesReference<TypeParam>({2, size * 5, 5, true, false, p});
    }
    ExpectMatchesReference<TypeParam>({2, 64 * 384, 384, true, true, p});
  }
  EXPECT_TRUE(RunKernel<TypeParam>(2, {0, 16, 16, false, true, 0.1f}).empty());
  EXPECT_TRUE(RunKernel<TypeParam>(2, {16, 0, 1, false, true, 0.1f}).empty());
}

TEST(Dropout, BackwardMakesTheMaskOfTheForwardPassAgain) {
  ThreadPool pool(2);
  const int64_t samples = 3, elements = 1000;
  const auto y = Dropped(samples, std::vector<float>(samples * elements, 1.0f), 0.3f, kKey);
  auto dx = RandomFloats(samples * elements, 9);
  const auto dy = dx;
  DropoutAdd<float>(pool, {.samples = samples,
                           .elements_per_sample = elements,
                           .x = dx.data(),
                           .p = 0.3f,
                           .key = kKey,
                           .y = dx.data()});  // in place
  for (size_t i = 0; i < dx.size(); ++i) ASSERT_FLOAT_EQ(dx[i], dy[i] * y[i]);
}

TEST(Dropout, ASamplesMaskDoesNotDependOnItsBatch) {
  const int64_t elements = 130;
  const auto x = RandomFloats(4 * elements, 1);
  const auto whole = Dropped(4, x, 0.5f, kKey);
  for (uint32_t s = 0; s < 4; ++s) {
    DropoutKey key = kKey;
    key.sample += s;
    const auto part =
        Dropped(1, {x.begin() + s * elements, x.begin() + (s + 1) * elements}, 0.5f, key);
    ExpectSameBits(part, {whole.begin() + s * elements, whole.begin() + (s + 1) * elements});
  }
}

std::vector<float> MaskOf(const DropoutKey& key, float p, int64_t n) {
  return Dropped(1, std::vector<float>(n, 1.0f), p, key);
}

TEST(Dropout, KeepsTheShareItSaysAndScalesIt) {
  constexpr int64_t kCount = 400000;
  for (const float p : {0.1f, 0.2f, 0.5f}) {
    const auto mask = MaskOf(kKey, p, kCount);
    int64_t dropped = 0;
    for (const float value : mask) {
      if (value == 0.0f)
        ++dropped;
      else
        ASSERT_FLOAT_EQ(value, 1.0f / (1.0f - p));
    }
    const double sigma = std::sqrt(kCount * p * (1.0 - p));
    EXPECT_NEAR(static_cast<double>(dropped), kCount * static_cast<double>(p), 4 * sigma);
  }
}

TEST(Dropout, EveryPartOfTheKeyGivesAnUnrelatedMask) {
  constexpr int64_t kCount = 100000;
  const auto base = MaskOf(kKey, 0.5f, kCount);
  ExpectSameBits(MaskOf(kKey, 0.5f, kCount), base);
  for (int part = 0; part < 5; ++part) {
    DropoutKey other = kKey;
    if (part == 0) other.seed ^= 1;
    if (part == 1) other.seed ^= uint64_t{1} << 55;
    if (part == 2) ++other.step;
    if (part == 3) ++other.sample;
    if (part == 4) ++other.site;
    const auto mask = MaskOf(other, 0.5f, kCount);
    int64_t agree = 0;
    for (int64_t i = 0; i < kCount; ++i) agree += mask[i] == base[i];
    EXPECT_NEAR(static_cast<double>(agree), kCount / 2.0, 4 * std::sqrt(kCount / 4.0)) << part;
  }
}

}  // namespace
}  // namespace tug::kernels
