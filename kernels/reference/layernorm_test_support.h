// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_LAYERNORM_TEST_SUPPORT_H_
#define TUG_KERNELS_REFERENCE_LAYERNORM_TEST_SUPPORT_H_

// Tests of LayerNorm, shared by the CPU and GPUs.

#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/kernel_test_support.h"
#include "kernels/reference/layernorm_ref.h"

namespace tug::kernels {

// Of: a device (OnCpu or OnGpu) with the element type T and the operations Forward, Backward,
// ResidualForward and Dropout.
template <typename Of>
class LayerNormTest : public Of {
 protected:
  using T = typename Of::T;

  struct Options {
    bool beta = true;
    bool accumulate = true;
    int64_t offset = 0;  // elements by which arrays of the width start after a 16-byte boundary
  };

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
    // The inputs without the first `row` rows.
    Inputs From(int64_t row) const {
      Inputs rest = *this;
      rest.rows -= row;
      for (auto* of : {&rest.x, &rest.dy, &rest.dx})
        of->erase(of->begin(), of->begin() + row * width);
      return rest;
    }

    int64_t rows, width;
    std::vector<T> x, dy, dx;
    std::vector<float> gamma, beta, dgamma, dbeta;
  };

  template <typename U, typename Sum>
  struct Result {
    std::vector<U> y;
    std::vector<Sum> mean, rstd;
    std::vector<U> dx;
    std::vector<Sum> dgamma, dbeta;
  };

  Result<T, float> RunKernels(const Inputs& in, const Options& options) {
    const int64_t offset = options.offset;
    const auto x = this->Put(Behind(offset, in.x)), y = this->Put(Behind(offset, in.x));
    const auto dy = this->Put(Behind(offset, in.dy)), dx = this->Put(Behind(offset, in.dx));
    const auto gamma = this->Put(Behind(offset, in.gamma));
    const auto beta = this->Put(Behind(offset, in.beta));
    const auto dgamma = this->Put(in.dgamma), dbeta = this->Put(in.dbeta);
    const auto mean = this->Put(std::vector<float>(in.rows));
    const auto rstd = this->Put(std::vector<float>(in.rows));
    this->Forward({in.rows, in.width, x.data() + offset, gamma.data() + offset,
                   options.beta ? beta.data() + offset : nullptr, y.data() + offset, mean.data(),
                   rstd.data()});
    this->Backward({.rows = in.rows,
                    .width = in.width,
                    .dy = dy.data() + offset,
                    .x = x.data() + offset,
                    .gamma = gamma.data() + offset,
                    .mean = mean.data(),
                    .rstd = rstd.data(),
                    .accumulate = options.accumulate,
                    .dx = dx.data() + offset,
                    .dgamma = dgamma.data(),
                    .dbeta = options.beta ? dbeta.data() : nullptr});
    return {Without(offset, y.Read()),  mean.Read(),   rstd.Read(),
            Without(offset, dx.Read()), dgamma.Read(), dbeta.Read()};
  }

  static Result<double, double> RunReference(const Inputs& in, const Options& options) {
    Result<double, double> out{std::vector<double>(in.x.size()),
                               std::vector<double>(in.rows),
                               std::vector<double>(in.rows),
                               ToDouble(in.dx),
                               ToDouble(in.dgamma),
                               ToDouble(in.dbeta)};
    const auto x = ToDouble(in.x), dy = ToDouble(in.dy);
    const auto gamma = ToDouble(in.gamma), beta = ToDouble(in.beta);
    LayerNormForwardRef<double>({in.rows, in.width, x.data(), gamma.data(),
                                 options.beta ? beta.data() : nullptr, out.y.data(),
                                 out.mean.data(), out.rstd.data()});
    LayerNormBackwardRef<double>({.rows = in.rows,
                                  .width = in.width,
                                  .dy = dy.data(),
                                  .x = x.data(),
                                  .gamma = gamma.data(),
                                  .mean = out.mean.data(),
                                  .rstd = out.rstd.data(),
                                  .accumulate = options.accumulate,
                                  .dx = out.dx.data(),
                                  .dgamma = out.dgamma.data(),
                                  .dbeta = options.beta ? out.dbeta.data() : nullptr});
    return out;
  }

  static void ExpectSame(const Result<T, float>& a, const Result<T, float>& b) {
    ExpectSameBits(a.y, b.y);
    ExpectSameBits(a.mean, b.mean);
    ExpectSameBits(a.rstd, b.rstd);
    ExpectSameBits(a.dx, b.dx);
    ExpectSameBits(a.dgamma, b.dgamma);
    ExpectSameBits(a.dbeta, b.dbeta);
  }

  // All operations are those of IEEE FP32 on a GPU, too, so a GPU needs no extra tolerance. A sum
  // of n terms by a tree has an error of about log2(n) 2^-24 of the sum of their magnitudes, here
  // at most (3 + 5 + 4) 2^-24 = 7e-7 over a row. Across rows the terms of a thread are added one by
  // one: rows / 8 for a block of few rows.
  void ExpectMatchesReference(int64_t rows, int64_t width, const Options& options = {}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << width << " beta " << options.beta
                                    << " accumulate " << options.accumulate);
    const Inputs in(rows, width);
    const auto expected = RunReference(in, options);
    this->BeginRun(0);
    const auto one = RunKernels(in, options);
    if (width > 0) {  // the mean of no elements is undefined
      ExpectClose(one.mean, expected.mean, 1e-6, 1e-6);
      ExpectClose(one.rstd, expected.rstd, 0, 3e-6);
    }
    ExpectClose(one.y, expected.y, 4e-6, 4e-6 + kRounding<T>);
    if (width > 1) {  // for one element the variance is 0 and rstd magnifies rounding 316 times
      ExpectClose(one.dx, expected.dx, 4e-6, 4e-6 + kRounding<T>);
    }
    const double sum_bound = 4e-6 + 2e-6 * static_cast<double>(rows) / 8;
    ExpectClose(one.dgamma, expected.dgamma, sum_bound, 4e-6);
    ExpectClose(one.dbeta, expected.dbeta, sum_bound, 4e-6);
    for (int run = 1; run < this->kRuns; ++run) {
      this->BeginRun(run);
      ExpectSame(RunKernels(in, options), one);
    }
  }

  void ExpectResidualBits(int64_t width, float p, bool with_bias) {
    SCOPED_TRACE(testing::Message() << width << " p " << p << " bias " << with_bias);
    const int64_t samples = 3, seq = 30, rows = samples * seq;
    const Inputs in(rows, width);
    const std::vector<T> nothing(in.x.size());
    const auto residual = this->Put(in.dx), x = this->Put(in.x);
    const auto sum = this->Put(nothing), y = this->Put(nothing);
    const auto gamma = this->Put(in.gamma), beta = this->Put(in.beta);
    const auto bias = this->Put(RandomFloats(width, 8));
    const auto mean = this->Put(std::vector<float>(rows));
    const auto rstd = this->Put(std::vector<float>(rows));
    const ResidualLayerNormForwardArgs<T> apart = {
        .add = {.samples = samples,
                .elements_per_sample = seq * width,
                .width = width,
                .x = x.data(),
                .bias = with_bias ? bias.data() : nullptr,
                .residual = residual.data(),
                .p = p,
                .key = {.seed = 1, .step = 2, .sample = 3, .site = 4},
                .y = sum.data()},
        .gamma = gamma.data(),
        .beta = beta.data(),
        .y = y.data(),
        .mean = mean.data(),
        .rstd = rstd.data()};
    this->BeginRun(0);
    this->Dropout(apart.add);
    this->Forward(apart.norm());
    for (int run = 0; run < this->kRuns; ++run) {
      this->BeginRun(run);
      const auto in_place = this->Put(in.x);  // overwritten with the sum
      const auto y_at_once = this->Put(nothing);
      const auto mean_at_once = this->Put(std::vector<float>(rows));
      const auto rstd_at_once = this->Put(std::vector<float>(rows));
      ResidualLayerNormForwardArgs<T> at_once = apart;
      at_once.add.x = at_once.add.y = in_place.data();
      at_once.y = y_at_once.data();
      at_once.mean = mean_at_once.data();
      at_once.rstd = rstd_at_once.data();
      this->ResidualForward(at_once);
      ExpectSameBits(in_place.Read(), sum.Read());
      ExpectSameBits(y_at_once.Read(), y.Read());
      ExpectSameBits(mean_at_once.Read(), mean.Read());
      ExpectSameBits(rstd_at_once.Read(), rstd.Read());
    }
  }
};
TYPED_TEST_SUITE_P(LayerNormTest);

TYPED_TEST_P(LayerNormTest, MatchesTheReferenceAtEverySizeAndRepeatsItsBits) {
  for (const int64_t size : kTestSizes) {
    for (const auto& [beta, accumulate] : {std::pair(true, true), {false, true}, {true, false}}) {
      this->ExpectMatchesReference(3, size, {beta, accumulate});
      this->ExpectMatchesReference(size, 40, {beta, accumulate});
    }
  }
}

TYPED_TEST_P(LayerNormTest, ARowsBitsDoNotDependOnItsPlace) {
  const typename TestFixture::Inputs in(100, 37);
  const auto whole = this->RunKernels(in, {});
  const auto part = this->RunKernels(in.From(30), {});
  ExpectSameBits(part.y, {whole.y.begin() + 30 * 37, whole.y.end()});
  ExpectSameBits(part.dx, {whole.dx.begin() + 30 * 37, whole.dx.end()});
}

TYPED_TEST_P(LayerNormTest, BackwardMayWriteOverTheGradientItReads) {
  for (const int64_t width : {77, 128, 1100}) {
    const typename TestFixture::Inputs in(5, width);
    const auto apart = this->RunKernels(in, {.accumulate = false});
    const auto x = this->Put(in.x), dx = this->Put(in.dy);
    const auto gamma = this->Put(in.gamma), dgamma = this->Put(in.dgamma);
    const auto mean = this->Put(apart.mean), rstd = this->Put(apart.rstd);
    this->Backward({.rows = in.rows,
                    .width = in.width,
                    .dy = dx.data(),
                    .x = x.data(),
                    .gamma = gamma.data(),
                    .mean = mean.data(),
                    .rstd = rstd.data(),
                    .accumulate = false,
                    .dx = dx.data(),
                    .dgamma = dgamma.data()});
    ExpectSameBits(dx.Read(), apart.dx);
    ExpectSameBits(dgamma.Read(), apart.dgamma);
  }
}

// Widths that are and are not multiples of a block of random numbers. On the CPU more rows than a
// task has; on a GPU rows of a warp and of a block.
TYPED_TEST_P(LayerNormTest, BehindAResidualHasTheBitsOfDropoutAndLayerNormApart) {
  for (const int64_t width : {1, 31, 32, 64, 100, 128, 768, 1023, 1600}) {
    for (const float p : {0.0f, 0.3f}) this->ExpectResidualBits(width, p, width % 2 == 0);
    this->ExpectResidualBits(width, 0.3f, width % 2 != 0);
  }
}

REGISTER_TYPED_TEST_SUITE_P(LayerNormTest, MatchesTheReferenceAtEverySizeAndRepeatsItsBits,
                            ARowsBitsDoNotDependOnItsPlace, BackwardMayWriteOverTheGradientItReads,
                            BehindAResidualHasTheBitsOfDropoutAndLayerNormApart);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_LAYERNORM_TEST_SUPPORT_H_
