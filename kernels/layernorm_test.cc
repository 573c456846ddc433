#include "kernels/layernorm.h"

#include "gtest/gtest.h"
#include "kernels/kernel_test_support.h"
#include "kernels/layernorm_ref.h"

namespace tug::kernels {
namespace {

template <typename T>
struct Result {
  std::vector<T> y, mean, rstd, dx, dgamma, dbeta;
};

struct Inputs {
  Inputs(int64_t r, int64_t w)
      : rows(r),
        width(w),
        x(RandomFloats(r * w, 1, 3.0f)),
        gamma(RandomFloats(w, 2)),
        beta(RandomFloats(w, 3)),
        dy(RandomFloats(r * w, 4)),
        dx(RandomFloats(r * w, 5)),
        dgamma(RandomFloats(w, 6)),
        dbeta(RandomFloats(w, 7)) {}
  int64_t rows, width;
  std::vector<float> x, gamma, beta, dy, dx, dgamma, dbeta;
};

Result<float> RunKernel(int threads, const Inputs& in, bool with_beta) {
  ThreadPool pool(threads);
  Result<float> out{std::vector<float>(in.x.size()),
                    std::vector<float>(in.rows),
                    std::vector<float>(in.rows),
                    in.dx,
                    in.dgamma,
                    in.dbeta};
  LayerNormForward(pool, in.rows, in.width, in.x.data(), in.gamma.data(),
                   with_beta ? in.beta.data() : nullptr, out.y.data(), out.mean.data(),
                   out.rstd.data());
  LayerNormBackward(pool, in.rows, in.width, in.dy.data(), in.x.data(), in.gamma.data(),
                    out.mean.data(), out.rstd.data(), out.dx.data(), out.dgamma.data(),
                    with_beta ? out.dbeta.data() : nullptr);
  return out;
}

Result<double> RunReference(const Inputs& in, bool with_beta) {
  Result<double> out{std::vector<double>(in.x.size()),
                     std::vector<double>(in.rows),
                     std::vector<double>(in.rows),
                     ToDouble(in.dx),
                     ToDouble(in.dgamma),
                     ToDouble(in.dbeta)};
  const auto x = ToDouble(in.x), gamma = ToDouble(in.gamma), beta = ToDouble(in.beta);
  LayerNormForwardRef<double>(in.rows, in.width, x.data(), gamma.data(),
                              with_beta ? beta.data() : nullptr, out.y.data(), out.mean.data(),
                              out.rstd.data());
  LayerNormBackwardRef<double>(in.rows, in.width, ToDouble(in.dy).data(), x.data(), gamma.data(),
                               out.mean.data(), out.rstd.data(), out.dx.data(), out.dgamma.data(),
                               with_beta ? out.dbeta.data() : nullptr);
  return out;
}

void ExpectMatchesReference(int64_t rows, int64_t width, bool with_beta) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width << " beta " << with_beta);
  const Inputs in(rows, width);
  const auto expected = RunReference(in, with_beta);
  const auto one = RunKernel(1, in, with_beta);
  if (width > 0) {  // nothing has no mean
    ExpectClose(one.mean, expected.mean, 1e-6, 1e-6);
    ExpectClose(one.rstd, expected.rstd, 0, 3e-6);
  }
  ExpectClose(one.y, expected.y, 4e-6, 4e-6);
  if (width > 1) {  // of one element the variance is 0 and rstd magnifies rounding 316 times
    ExpectClose(one.dx, expected.dx, 4e-6, 4e-6);
  }
  const double sum_bound = 4e-6 + 2e-6 * static_cast<double>(rows) / 8;
  ExpectClose(one.dgamma, expected.dgamma, sum_bound, 4e-6);
  ExpectClose(one.dbeta, expected.dbeta, sum_bound, 4e-6);
  for (const int threads : {2, 3}) {
    const auto many = RunKernel(threads, in, with_beta);
    ExpectSameBits(many.y, one.y);
    ExpectSameBits(many.dx, one.dx);
    ExpectSameBits(many.dgamma, one.dgamma);
    ExpectSameBits(many.dbeta, one.dbeta);
  }
}

TEST(LayerNorm, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const int64_t size : kTestSizes) {
    for (const bool with_beta : {false, true}) {
      ExpectMatchesReference(3, size, with_beta);
      ExpectMatchesReference(size, 40, with_beta);
    }
  }
  ExpectMatchesReference(512, 384, true);
}

TEST(LayerNorm, ARowsBitsDoNotDependOnItsPlace) {
  const Inputs in(100, 37);
  const auto whole = RunKernel(1, in, true);
  Inputs slice = in;
  slice.rows = 70;
  slice.x.assign(in.x.begin() + 30 * 37, in.x.end());
  slice.dy.assign(in.dy.begin() + 30 * 37, in.dy.end());
  slice.dx.assign(in.dx.begin() + 30 * 37, in.dx.end());
  const auto part = RunKernel(1, slice, true);
  ExpectSameBits(part.y, {whole.y.begin() + 30 * 37, whole.y.end()});
  ExpectSameBits(part.dx, {whole.dx.begin() + 30 * 37, whole.dx.end()});
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
                               rstd.data(), dx.data(), dgamma.data(), dbeta.data());
  const auto by_x = [&](const auto& at) { return loss(at, gamma, beta); };
  const auto by_gamma = [&](const auto& at) { return loss(x, at, beta); };
  const auto by_beta = [&](const auto& at) { return loss(x, gamma, at); };
  ExpectClose(dx, FiniteDifferences(x, by_x), 1e-7, 1e-7);
  ExpectClose(dgamma, FiniteDifferences(gamma, by_gamma), 1e-8, 1e-8);
  ExpectClose(dbeta, FiniteDifferences(beta, by_beta), 1e-8, 1e-8);
}

}  // namespace
}  // namespace tug::kernels
