#include "kernels/bias.h"

#include "gtest/gtest.h"
#include "kernels/bias_ref.h"
#include "kernels/kernel_test_support.h"

namespace tug::kernels {
namespace {

template <typename T>
std::vector<float> RunKernel(int threads, int64_t rows, int64_t width) {
  ThreadPool pool(threads);
  auto dbias = RandomFloats(width, 2);
  const auto dy = As<T>(RandomFloats(rows * width, 4));
  BiasGradient(pool, rows, width, dy.data(), dbias.data());
  return dbias;
}

template <typename T>
void ExpectMatchesReference(int64_t rows, int64_t width) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
  auto dbias = ToDouble(RandomFloats(width, 2));
  const auto dy = ToDouble(As<T>(RandomFloats(rows * width, 4)));
  BiasGradientRef<double>(rows, width, dy.data(), dbias.data());
  const auto one = RunKernel<T>(1, rows, width);
  ExpectClose(one, dbias, 2e-6 + 1e-7 * static_cast<double>(rows) / 8, 1e-6);
  for (const int threads : {2, 3}) ExpectSameBits(RunKernel<T>(threads, rows, width), one);
}

template <typename T>
class BiasOf : public testing::Test {};
using ElementTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(BiasOf, ElementTypes);

TYPED_TEST(BiasOf, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const int64_t size : kTestSizes) {
    ExpectMatchesReference<TypeParam>(3, size);
    ExpectMatchesReference<TypeParam>(size, 33);
  }
  ExpectMatchesReference<TypeParam>(512, 384);
}

TEST(Bias, ReferenceGradientIsTheFiniteDifference) {
  const int64_t rows = 4, width = 3;
  const auto x = ToDouble(RandomFloats(rows * width, 1));
  const auto w = ToDouble(RandomFloats(rows * width, 2));
  const auto loss = [&](const std::vector<double>& bias) {
    auto y = x;
    for (int64_t i = 0; i < rows * width; ++i) y[i] += bias[i % width];
    return Dot(w, y);
  };
  std::vector<double> dbias(width);
  BiasGradientRef<double>(rows, width, w.data(), dbias.data());
  ExpectClose(dbias, FiniteDifferences(ToDouble(RandomFloats(width, 3)), loss), 1e-8, 1e-8);
}

}  // namespace
}  // namespace tug::kernels
