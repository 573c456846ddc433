#include "kernels/layernorm.h"

#include "gtest/gtest.h"
#include "kernels/kernel_test_support.h"
#include "kernels/layernorm_ref.h"

namespace tug::kernels {
namespace {

template <typename T, typename Sum>
struct Result {
  std::vector<T> y;
  std::vector<Sum> mean, rstd;
  std::vector<T> dx;
  std::vector<Sum> dgamma, dbeta;
};

struct Options {
  bool beta = true;
  bool accumulate = true;
};

template <typename T>
struct Inputs {
  Inputs(int64_t r, int64_t w)
      : rows(r),
        width(w),
        x(As<T>(RandomFloats(r * w, 1, 3.0f))),
        dy(As<T>(RandomFloats(r * w, 4))),
        dx(As<T>(RandomFloats(r * w, 5))),
        gamma(RandomFloats(w, 2)),
        beta(RandomFloats(w, 3)),
        dgamma(RandomFloats(w, 6)),
        dbeta(RandomFloats(w, 7)) {}
  int64_t rows, width;
  std::vector<T> x, dy, dx;
  std::vector<float> gamma, beta, dgamma, dbeta;
};

template <typename T>
Result<T, float> RunKernel(int threads, const Inputs<T>& in, const Options& options) {
  ThreadPool pool(threads);
  Result<T, float> out{std::vector<T>(in.x.size()),
                       std::vector<float>(in.rows),
                       std::vector<float>(in.rows),
                       in.dx,
                       in.dgamma,
                       in.dbeta};
  LayerNormForward(pool, in.rows, in.width, in.x.data(), in.gamma.data(),
                   options.beta ? in.beta.data() : nullptr, out.y.data(), out.mean.data(),
                   out.rstd.data());
  LayerNormBackward(pool, in.rows, in.width, in.dy.data(), in.x.data(), in.gamma.data(),
                    out.mean.data(), out.rstd.data(), options.accumulate, out.dx.data(),
                    out.dgamma.data(), options.beta ? out.dbeta.data() : nullptr);
  return out;
}

template <typename T>
Result<double, double> RunReference(const Inputs<T>& in, const Options& options) {
  Result<double, double> out{std::vector<double>(in.x.size()),
                             std::vector<double>(in.rows),
                             std::vector<double>(in.rows),
                             ToDouble(in.dx),
                             ToDouble(in.dgamma),
                             ToDouble(in.dbeta)};
  const auto x = ToDouble(in.x), gamma = ToDouble(in.gamma), beta = ToDouble(in.beta);
  LayerNormForwardRef<double>(in.rows, in.width, x.data(), gamma.data(),
                              options.beta ? beta.data() : nullptr, out.y.data(), out.mean.data(),
                              out.rstd.data());
  LayerNormBackwardRef<double>(in.rows, in.width, ToDouble(in.dy).data(), x.data(), gamma.data(),
                               out.mean.data(), out.rstd.data(), options.accumulate, out.dx.data(),
                               out.dgamma.data(), options.beta ? out.dbeta.data() : nullptr);
  return out;
}

template <typename T>
void ExpectMatchesReference(int64_t rows, int64_t width, const Options& options) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width << " beta " << options.beta
                                  << " accumulate " << options.accumulate);
  const Inputs<T> in(rows, width);
  const auto expected = RunReference(in, options);
  const auto one = RunKernel(1, in, options);
  if (width > 0) {  // nothing has no mean
    ExpectClose(one.mean, expected.mean, 1e-6, 1e-6);
    ExpectClose(one.rstd, expected.rstd, 0, 3e-6);
  }
  ExpectClose(one.y, expected.y, 4e-6, 4e-6 + kRounding<T>);
  if (width > 1) {  // of one element the variance is 0 and rstd magnifies rounding 316 times
    ExpectClose(one.dx, expected.dx, 4e-6, 4e-6 + kRounding<T>);
  }
  const double sum_bound = 4e-6 + 2e-6 * static_cast<double>(rows) / 8;
  ExpectClose(one.dgamma, expected.dgamma, sum_bound, 4e-6);
  ExpectClose(one.dbeta, expected.dbeta, sum_bound, 4e-6);
  for (const int threads : {2, 3}) {
    const auto many = RunKernel(threads, in, options);
    ExpectSameBits(many.y, one.y);
    ExpectSameBits(many.dx, one.dx);
    ExpectSameBits(many.dgamma, one.dgamma);
    ExpectSameBits(many.dbeta, one.dbeta);
  }
}

template <typename T>
class LayerNormOf : public testing::Test {};
using ElementTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(LayerNormOf, ElementTypes);

TYPED_TEST(LayerNormOf, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const int64_t size : kTestSizes) {
    for (const Options options :
         {Options{true, true}, Options{false, true}, Options{true, false}}) {
      ExpectMatchesReference<TypeParam>(3, size, options);
      ExpectMatchesReference<TypeParam>(size, 40, options);
    }
  }
  ExpectMatchesReference<TypeParam>(512, 384, {});
}

TYPED_TEST(LayerNormOf, ARowsBitsDoNotDependOnItsPlace) {
  const Inputs<TypeParam> in(100, 37);
  const auto whole = RunKernel(1, in, {});
  auto slice = in;
  slice.rows = 70;
  slice.x.assign(in.x.begin() + 30 * 37, in.x.end());
  slice.dy.assign(in.dy.begin() + 30 * 37, in.dy.end());
  slice.dx.assign(in.dx.begin() + 30 * 37, in.dx.end());
  const auto part = RunKernel(1, slice, {});
  ExpectSameBits(part.y, {whole.y.begin() + 30 * 37, whole.y.end()});
  ExpectSameBits(part.dx, {whole.dx.begin() + 30 * 37, whole.dx.end()});
}

TYPED_TEST(LayerNormOf, BackwardMayWriteOverTheGradientItReads) {
  const Inputs<TypeParam> in(5, 77);
  const auto apart = RunKernel(1, in, {.accumulate = false});
  ThreadPool pool(1);
  auto dx = in.dy;
  auto dgamma = in.dgamma;
  LayerNormBackward(pool, in.rows, in.width, dx.data(), in.x.data(), in.gamma.data(),
                    apart.mean.data(), apart.rstd.data(), /*accumulate=*/false, dx.data(),
                    dgamma.data(), nullptr);
  ExpectSameBits(dx, apart.dx);
  ExpectSameBits(dgamma, apart.dgamma);
}

// Widths of whole and of broken blocks of random numbers; more rows than a task has.
TYPED_TEST(LayerNormOf, BehindAResidualHasTheBitsOfDropoutAndLayerNormApart) {
  const DropoutKey key{.seed = 1, .step = 2, .sample = 3, .site = 4};
  for (const int64_t width : {1, 31, 32, 33, 128, 1023}) {
    for (const float p : {0.0f, 0.3f}) {
      SCOPED_TRACE(testing::Message() << width << " p " << p);
      const int64_t samples = 3, seq = 30, rows = samples * seq;
      const Inputs<TypeParam> in(rows, width);
      const auto bias = RandomFloats(width, 8);
      const float* const bias_or_none = width % 2 == 0 ? nullptr : bias.data();
      std::vector<TypeParam> sum(in.x.size()), y(in.x.size());
      std::vector<float> mean(rows), rstd(rows);
      ThreadPool one(1);
      BiasDropoutAdd(one, samples, seq * width, width, in.x.data(), bias_or_none, in.dx.data(), p,
                     key, sum.data());
      LayerNormForward(one, rows, width, sum.data(), in.gamma.data(), in.beta.data(), y.data(),
                       mean.data(), rstd.data());
      for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        auto at_once = in.x;  // which the sum is written over
        std::vector<TypeParam> y_at_once(y.size());
        std::vector<float> mean_at_once(rows), rstd_at_once(rows);
        ResidualLayerNormForward(pool, samples, seq, width, at_once.data(), bias_or_none,
                                 in.dx.data(), p, key, in.gamma.data(), in.beta.data(),
                                 at_once.data(), y_at_once.data(), mean_at_once.data(),
                                 rstd_at_once.data());
        ExpectSameBits(at_once, sum);
        ExpectSameBits(y_at_once, y);
        ExpectSameBits(mean_at_once, mean);
        ExpectSameBits(rstd_at_once, rstd);
      }
    }
  }
}

TEST(LayerNorm, ReferenceGradientsAreFiniteDifferences) {
  const int64_t rows = 3, width = 7;
  const auto x = ToDouble(RandomFloats(rows * width, 1));
  const auto gamma = ToDouble(RandomFloats(width, 2));
  const auto beta = ToDouble(RandomFloats(width, 3));
  const auto w = ToDouble(RandomFloats(rows * width, 4));
  std::vector<double> y(rows * width), mean(rows), rstd(rows);
  const auto loss = [&](const auto& x_at, const auto& gamma_at, const auto& beta_at) {
    LayerNormForwardRef<double>(rows, width, x_at.data(), gamma_at.data(), beta_at.data(), y.data(),
                                mean.data(), rstd.data());
    return Dot(w, y);
  };
  loss(x, gamma, beta);
  std::vector<double> dx(rows * width), dgamma(width), dbeta(width);
  LayerNormBackwardRef<double>(rows, width, w.data(), x.data(), gamma.data(), mean.data(),
                               rstd.data(), /*accumulate=*/false, dx.data(), dgamma.data(),
                               dbeta.data());
  const auto by_x = [&](const auto& at) { return loss(at, gamma, beta); };
  const auto by_gamma = [&](const auto& at) { return loss(x, at, beta); };
  const auto by_beta = [&](const auto& at) { return loss(x, gamma, at); };
  ExpectClose(dx, FiniteDifferences(x, by_x), 1e-7, 1e-7);
  ExpectClose(dgamma, FiniteDifferences(gamma, by_gamma), 1e-8, 1e-8);
  ExpectClose(dbeta, FiniteDifferences(beta, by_beta), 1e-8, 1e-8);
}

}  // namespace
}  // namespace tug::kernels
