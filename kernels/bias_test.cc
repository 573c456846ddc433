#include "kernels/bias.h"

#include "gtest/gtest.h"
#include "kernels/add.h"
#include "kernels/bias_ref.h"
#include "kernels/kernel_test_support.h"

namespace tug::kernels {
namespace {

struct Result {
  std::vector<float> x, dbias;
};

Result RunKernel(int threads, int64_t rows, int64_t width) {
  ThreadPool pool(threads);
  Result out{RandomFloats(rows * width, 1), RandomFloats(width, 2)};
  const auto bias = RandomFloats(width, 3);
  const auto dy = RandomFloats(rows * width, 4);
  AddBias(pool, rows, width, bias.data(), out.x.data());
  BiasGradient(pool, rows, width, dy.data(), out.dbias.data());
  return out;
}

void ExpectMatchesReference(int64_t rows, int64_t width) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
  auto x = ToDouble(RandomFloats(rows * width, 1));
  auto dbias = ToDouble(RandomFloats(width, 2));
  AddBiasRef<double>(rows, width, ToDouble(RandomFloats(width, 3)).data(), x.data());
  BiasGradientRef<double>(rows, width, ToDouble(RandomFloats(rows * width, 4)).data(),
                          dbias.data());
  const Result one = RunKernel(1, rows, width);
  ExpectClose(one.x, x, 0, 6e-8);
  ExpectClose(one.dbias, dbias, 2e-6 + 1e-7 * static_cast<double>(rows) / 8, 1e-6);
  for (const int threads : {2, 3}) {
    const Result many = RunKernel(threads, rows, width);
    ExpectSameBits(many.x, one.x);
    ExpectSameBits(many.dbias, one.dbias);
  }
}

TEST(Bias, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const int64_t size : kTestSizes) {
    ExpectMatchesReference(3, size);
    ExpectMatchesReference(size, 33);
  }
  ExpectMatchesReference(512, 384);
}

TEST(Bias, ReferenceGradientIsTheFiniteDifference) {
  const int64_t rows = 4, width = 3;
  const auto x = ToDouble(RandomFloats(rows * width, 1));
  const auto w = ToDouble(RandomFloats(rows * width, 2));
  const auto loss = [&](const std::vector<double>& bias) {
    auto y = x;
    AddBiasRef<double>(rows, width, bias.data(), y.data());
    return Dot(w, y);
  };
  std::vector<double> dbias(width);
  BiasGradientRef<double>(rows, width, w.data(), dbias.data());
  ExpectClose(dbias, FiniteDifferences(ToDouble(RandomFloats(width, 3)), loss), 1e-8, 1e-8);
}

TEST(Add, IsTheSumAtEverySizeAndMayWriteOverAnInput) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const int64_t n : {0, 1, 31, 32, 33, 1023, 50000}) {
      const auto a = RandomFloats(n, 1);
      auto b = RandomFloats(n, 2);
      std::vector<float> expected(n);
      for (int64_t i = 0; i < n; ++i) expected[i] = a[i] + b[i];
      Add(pool, n, a.data(), b.data(), b.data());
      ExpectSameBits(b, expected);
    }
  }
}

}  // namespace
}  // namespace tug::kernels
