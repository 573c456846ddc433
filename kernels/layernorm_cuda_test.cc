#include "kernels/layernorm_cuda.h"

#include "gtest/gtest.h"
#include "kernels/cuda_test_support.h"
#include "kernels/dropout_cuda.h"
#include "kernels/kernel_test_support.h"
#include "kernels/layernorm_ref.h"

namespace tug::kernels::cuda {
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

// `offset`: elements by which all arrays of the width lie behind a boundary of 16 bytes.
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
std::vector<T> Behind(int64_t offset, std::vector<T> values) {
  values.insert(values.begin(), static_cast<size_t>(offset), T());
  return values;
}

template <typename T>
std::vector<T> Without(int64_t offset, std::vector<T> values) {
  values.erase(values.begin(), values.begin() + offset);
  return values;
}

template <typename T>
class LayerNormCuda : public CudaTest {
 protected:
  Result<T, float> RunKernels(const Inputs<T>& in, const Options& options, int64_t offset = 0) {
    const OnDevice x(Behind(offset, in.x), this->stream()), y(x.Read(), this->stream());
    const OnDevice dy(Behind(offset, in.dy), this->stream());
    const OnDevice dx(Behind(offset, in.dx), this->stream());
    const OnDevice gamma(Behind(offset, in.gamma), this->stream());
    const OnDevice beta(Behind(offset, in.beta), this->stream());
    const OnDevice dgamma(in.dgamma, this->stream()), dbeta(in.dbeta, this->stream());
    const OnDevice mean(std::vector<float>(in.rows), this->stream());
    const OnDevice rstd(std::vector<float>(in.rows), this->stream());
    absl::Status status =
        LayerNormForward(in.rows, in.width, x.data() + offset, gamma.data() + offset,
                         options.beta ? beta.data() + offset : nullptr, y.data() + offset,
                         mean.data(), rstd.data(), this->stream());
    EXPECT_TRUE(status.ok()) << status;
    status = LayerNormBackward(in.rows, in.width, dy.data() + offset, x.data() + offset,
                               gamma.data() + offset, mean.data(), rstd.data(), options.accumulate,
                               dx.data() + offset, dgamma.data(),
                               options.beta ? dbeta.data() : nullptr, this->stream());
    EXPECT_TRUE(status.ok()) << status;
    return {Without(offset, y.Read()),  mean.Read(),   rstd.Read(),
            Without(offset, dx.Read()), dgamma.Read(), dbeta.Read()};
  }

  static Result<double, double> RunReference(const Inputs<T>& in, const Options& options) {
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
                                 out.mean.data(), out.rstd.data(), options.accumulate,
                                 out.dx.data(), out.dgamma.data(),
                                 options.beta ? out.dbeta.data() : nullptr);
    return out;
  }

  // The CPU's bounds. All operations are those of IEEE FP32 on a GPU too, so nothing is added for
  // it: a sum of n terms by a tree has an error of about log2(n) 2^-24 of the sum of their
  // magnitudes, here at most (3 + 5 + 4) 2^-24 = 7e-7 over a row. Over rows the terms of a thread
  // are added one after another: rows / 8 of a block of few rows, the CPU's allowance.
  void ExpectMatchesReference(int64_t rows, int64_t width, const Options& options) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << width << " beta " << options.beta
                                    << " accumulate " << options.accumulate);
    const Inputs<T> in(rows, width);
    const auto expected = RunReference(in, options);
    const auto once = RunKernels(in, options);
    if (width > 0) {  // nothing has no mean
      ExpectClose(once.mean, expected.mean, 1e-6, 1e-6);
      ExpectClose(once.rstd, expected.rstd, 0, 3e-6);
    }
    ExpectClose(once.y, expected.y, 4e-6, 4e-6 + kRounding<T>);
    if (width > 1) {  // of one element the variance is 0 and rstd magnifies rounding 316 times
      ExpectClose(once.dx, expected.dx, 4e-6, 4e-6 + kRounding<T>);
    }
    const double sum_bound = 4e-6 + 2e-6 * static_cast<double>(rows) / 8;
    ExpectClose(once.dgamma, expected.dgamma, sum_bound, 4e-6);
    ExpectClose(once.dbeta, expected.dbeta, sum_bound, 4e-6);
  }

  static void ExpectSame(const Result<T, float>& a, const Result<T, float>& b) {
    ExpectSameBits(a.y, b.y);
    ExpectSameBits(a.mean, b.mean);
    ExpectSameBits(a.rstd, b.rstd);
    ExpectSameBits(a.dx, b.dx);
    ExpectSameBits(a.dgamma, b.dgamma);
    ExpectSameBits(a.dbeta, b.dbeta);
  }

  void ExpectResidualBits(int64_t width, float p, bool with_bias) {
    SCOPED_TRACE(testing::Message() << width << " p " << p);
    const DropoutKey key{.seed = 1, .step = 2, .sample = 3, .site = 4};
    const int64_t samples = 3, seq = 5, rows = samples * seq;
    const Inputs<T> in(rows, width);
    const std::vector<T> nothing(in.x.size());
    const OnDevice x(in.x, this->stream()), residual(in.dx, this->stream());
    const OnDevice sum(nothing, this->stream()), y(nothing, this->stream());
    const OnDevice y_at_once(nothing, this->stream());
    const OnDevice gamma(in.gamma, this->stream()), beta(in.beta, this->stream());
    const OnDevice bias_gpu(RandomFloats(width, 8), this->stream());
    const OnDevice mean(std::vector<float>(rows), this->stream());
    const OnDevice rstd(mean.Read(), this->stream());
    const OnDevice mean_at_once(mean.Read(), this->stream());
    const OnDevice rstd_at_once(mean.Read(), this->stream());
    const float* const bias = with_bias ? bias_gpu.data() : nullptr;
    absl::Status status = BiasDropoutAdd(samples, seq * width, width, x.data(), bias,
                                         residual.data(), p, key, sum.data(), this->stream());
    ASSERT_TRUE(status.ok()) << status;
    status = LayerNormForward(rows, width, sum.data(), gamma.data(), beta.data(), y.data(),
                              mean.data(), rstd.data(), this->stream());
    ASSERT_TRUE(status.ok()) << status;
    status = ResidualLayerNormForward(samples, seq, width, x.data(), bias, residual.data(), p, key,
                                      gamma.data(), beta.data(), x.data(), y_at_once.data(),
                                      mean_at_once.data(), rstd_at_once.data(), this->stream());
    ASSERT_TRUE(status.ok()) << status;
    ExpectSameBits(x.Read(), sum.Read());  // which the sum is written over
    ExpectSameBits(y_at_once.Read(), y.Read());
    ExpectSameBits(mean_at_once.Read(), mean.Read());
    ExpectSameBits(rstd_at_once.Read(), rstd.Read());
  }
};

using ElementTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(LayerNormCuda, ElementTypes);

TYPED_TEST(LayerNormCuda, MatchesTheReferenceAtEverySize) {
  for (const int64_t size : kTestSizes) {
    for (const Options options :
         {Options{true, true}, Options{false, true}, Options{true, false}}) {
      this->ExpectMatchesReference(3, size, options);
    }
    this->ExpectMatchesReference(size, 40, {});
  }
  for (const int64_t width : {384, 512, 768, 1024}) this->ExpectMatchesReference(20, width, {});
  for (const int64_t width : {1025, 1600, 4160}) this->ExpectMatchesReference(3, width, {});
}

TYPED_TEST(LayerNormCuda, HasTheSameBitsAtEveryRunAndBehindABoundary) {
  for (const int64_t width : {32, 768, 1600}) {
    const Inputs<TypeParam> in(11, width);
    const auto once = this->RunKernels(in, {});
    this->ExpectSame(this->RunKernels(in, {}), once);
    this->ExpectSame(this->RunKernels(in, {}, 1), once);
  }
}

TYPED_TEST(LayerNormCuda, ARowsBitsDoNotDependOnItsPlace) {
  const Inputs<TypeParam> in(100, 37);
  const auto whole = this->RunKernels(in, {});
  auto slice = in;
  slice.rows = 70;
  slice.x.assign(in.x.begin() + 30 * 37, in.x.end());
  slice.dy.assign(in.dy.begin() + 30 * 37, in.dy.end());
  slice.dx.assign(in.dx.begin() + 30 * 37, in.dx.end());
  const auto part = this->RunKernels(slice, {});
  ExpectSameBits(part.y, {whole.y.begin() + 30 * 37, whole.y.end()});
  ExpectSameBits(part.dx, {whole.dx.begin() + 30 * 37, whole.dx.end()});
}

TYPED_TEST(LayerNormCuda, BackwardMayWriteOverTheGradientItReads) {
  for (const int64_t width : {77, 128, 1100}) {
    const Inputs<TypeParam> in(5, width);
    const auto apart = this->RunKernels(in, {.accumulate = false});
    const OnDevice x(in.x, this->stream()), dx(in.dy, this->stream());
    const OnDevice gamma(in.gamma, this->stream()), dgamma(in.dgamma, this->stream());
    const OnDevice mean(apart.mean, this->stream()), rstd(apart.rstd, this->stream());
    const absl::Status status = LayerNormBackward(
        in.rows, in.width, dx.data(), x.data(), gamma.data(), mean.data(), rstd.data(),
        /*accumulate=*/false, dx.data(), dgamma.data(), nullptr, this->stream());
    ASSERT_TRUE(status.ok()) << status;
    ExpectSameBits(dx.Read(), apart.dx);
    ExpectSameBits(dgamma.Read(), apart.dgamma);
  }
}

// Widths of whole and of broken blocks of random numbers; of a warp and of a block.
TYPED_TEST(LayerNormCuda, BehindAResidualHasTheBitsOfDropoutAndLayerNormApart) {
  for (const int64_t width : {1, 31, 32, 64, 100, 128, 768, 1023, 1600}) {
    for (const float p : {0.0f, 0.3f}) this->ExpectResidualBits(width, p, width % 2 == 0);
    this->ExpectResidualBits(width, 0.3f, width % 2 != 0);
  }
}

TYPED_TEST(LayerNormCuda, RefusesAWidthBeyondItsLimit) {
  const OnDevice x(std::vector<TypeParam>(kMaxLayerNormWidth + 1), this->stream());
  const OnDevice gamma(std::vector<float>(kMaxLayerNormWidth + 1), this->stream());
  const absl::Status status =
      LayerNormForward<TypeParam>(1, kMaxLayerNormWidth + 1, x.data(), gamma.data(), nullptr,
                                  x.data(), gamma.data(), gamma.data(), this->stream());
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

using LayerNormOfFloatCuda = LayerNormCuda<float>;

// More rows than there are teams: of warps, of blocks.
TEST_F(LayerNormOfFloatCuda, SumsManyRows) {
  ExpectMatchesReference(132 * 2 * 8 + 77, 16, {});
  ExpectMatchesReference(132 * 2 + 9, 4096, {});
}

}  // namespace
}  // namespace tug::kernels::cuda
