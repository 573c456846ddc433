#include "kernels/gelu.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/gelu_ref.h"
#include "kernels/kernel_test_support.h"

namespace tug::kernels {
namespace {

struct Result {
  std::vector<float> pre, y, dx;
};

Result RunKernel(int threads, int64_t rows, int64_t width, const std::vector<float>& bias,
                 const std::vector<float>& x, const std::vector<float>& dy) {
  ThreadPool pool(threads);
  Result out{x, std::vector<float>(x.size()), std::vector<float>(x.size())};
  BiasGeluForward(pool, rows, width, bias.empty() ? nullptr : bias.data(), out.pre.data(),
                  out.y.data());
  GeluBackward(pool, rows * width, dy.data(), out.pre.data(), out.dx.data());
  return out;
}

void ExpectMatchesReference(int64_t rows, int64_t width, float range, bool with_bias) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width << " within " << range);
  const auto x = RandomFloats(rows * width, 1, range);
  const auto dy = RandomFloats(rows * width, 2);
  const auto bias = with_bias ? RandomFloats(width, 3) : std::vector<float>();
  const Result one = RunKernel(1, rows, width, bias, x, dy);
  std::vector<double> y(x.size()), dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const float pre = with_bias ? x[i] + bias[i % width] : x[i];
    ASSERT_EQ(one.pre[i], pre);
    y[i] = GeluRef<double>(pre);
    dx[i] = dy[i] * GeluGradientRef<double>(pre);
  }
  ExpectClose(one.y, y, 1e-6, 1e-6);
  ExpectClose(one.dx, dx, 2e-6, 2e-6);
  for (const int threads : {2, 3}) {
    const Result many = RunKernel(threads, rows, width, bias, x, dy);
    ExpectSameBits(many.pre, one.pre);
    ExpectSameBits(many.y, one.y);
    ExpectSameBits(many.dx, one.dx);
  }
}

TEST(Gelu, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const int64_t size : kTestSizes) {
    for (const bool with_bias : {false, true}) {
      ExpectMatchesReference(2, size, 3.0f, with_bias);
      ExpectMatchesReference(size, 17, 10.0f, with_bias);
    }
  }
  ExpectMatchesReference(256, 1536, 4.0f, true);
  ExpectMatchesReference(1, 1000, 1e4f, false);
}

TEST(Gelu, AnElementsBitsDoNotDependOnItsPlace) {
  const auto x = RandomFloats(200, 1, 3.0f);
  const auto dy = RandomFloats(200, 2);
  const Result whole = RunKernel(1, 1, 200, {}, x, dy);
  for (const int64_t begin : {1, 5, 16, 33, 150}) {
    const Result part = RunKernel(1, 1, 200 - begin, {}, {x.begin() + begin, x.end()},
                                  {dy.begin() + begin, dy.end()});
    ExpectSameBits(part.y, {whole.y.begin() + begin, whole.y.end()});
    ExpectSameBits(part.dx, {whole.dx.begin() + begin, whole.dx.end()});
  }
}

TEST(Gelu, PassesOnWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Result out = RunKernel(1, 1, 3, {}, {nan, 1.0f, nan}, {1.0f, 1.0f, 1.0f});
  EXPECT_TRUE(std::isnan(out.y[0]) && std::isnan(out.dx[0]));
  EXPECT_TRUE(std::isnan(out.y[2]) && std::isnan(out.dx[2]));
  EXPECT_TRUE(std::isfinite(out.y[1]));
}

TEST(Gelu, ReferenceGradientIsTheFiniteDifference) {
  const auto x = ToDouble(RandomFloats(50, 1, 4.0f));
  std::vector<double> gradient;
  for (const double u : x) gradient.push_back(GeluGradientRef(u));
  const auto loss = [](const std::vector<double>& at) {
    double sum = 0;
    for (const double u : at) sum += GeluRef(u);
    return sum;
  };
  ExpectClose(gradient, FiniteDifferences(x, loss), 1e-8, 1e-8);
}

}  // namespace
}  // namespace tug::kernels
