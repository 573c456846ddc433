#include "kernels/activation.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/activation_ref.h"
#include "kernels/kernel_test_support.h"

namespace tug::kernels {
namespace {

template <typename T>
struct Result {
  std::vector<T> pre, y, dx;
};

template <typename T>
class ActivationOf : public testing::Test {
 protected:
  static Result<T> RunKernel(Activation activation, int threads, int64_t rows, int64_t width,
                             const std::vector<float>& bias, const std::vector<T>& x,
                             const std::vector<T>& dy) {
    ThreadPool pool(threads);
    Result<T> out{x, std::vector<T>(x.size()), std::vector<T>(x.size())};
    BiasActivationForward(pool, activation, rows, width, bias.empty() ? nullptr : bias.data(),
                          out.pre.data(), out.y.data());
    ActivationBackward(pool, activation, rows * width, dy.data(), out.pre.data(), out.dx.data());
    return out;
  }

  static void ExpectMatchesReference(Activation activation, int64_t rows, int64_t width,
                                     float range, bool with_bias) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << width << " within " << range);
    const auto x = As<T>(RandomFloats(rows * width, 1, range));
    const auto dy = As<T>(RandomFloats(rows * width, 2));
    const auto bias = with_bias ? RandomFloats(width, 3) : std::vector<float>();
    const Result<T> one = RunKernel(activation, 1, rows, width, bias, x, dy);
    std::vector<double> y(x.size()), dx(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const auto sum = static_cast<float>(ToDouble(x[i])) + (with_bias ? bias[i % width] : 0.0f);
      ASSERT_EQ(one.pre[i], As<T>({sum})[0]);
      const double pre = ToDouble(one.pre[i]);
      y[i] = ActivationRef(activation, pre);
      dx[i] = ToDouble(dy[i]) * ActivationGradientRef(activation, pre);
    }
    ExpectClose(one.y, y, 1e-6, 1e-6 + kRounding<T>);
    ExpectClose(one.dx, dx, 2e-6, 2e-6 + kRounding<T>);
    for (const int threads : {2, 3}) {
      const Result<T> many = RunKernel(activation, threads, rows, width, bias, x, dy);
      ExpectSameBits(many.pre, one.pre);
      ExpectSameBits(many.y, one.y);
      ExpectSameBits(many.dx, one.dx);
    }
  }
};

using ElementTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(ActivationOf, ElementTypes);

TYPED_TEST(ActivationOf, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    for (const int64_t size : kTestSizes) {
      for (const bool with_bias : {false, true}) {
        this->ExpectMatchesReference(activation, 2, size, 3.0f, with_bias);
        this->ExpectMatchesReference(activation, size, 17, 10.0f, with_bias);
      }
    }
    this->ExpectMatchesReference(activation, 256, 1536, 4.0f, true);
    this->ExpectMatchesReference(activation, 1, 1000, 1e4f, false);
  }
}

TYPED_TEST(ActivationOf, AnElementsBitsDoNotDependOnItsPlace) {
  const auto x = As<TypeParam>(RandomFloats(200, 1, 3.0f));
  const auto dy = As<TypeParam>(RandomFloats(200, 2));
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    const auto whole = this->RunKernel(activation, 1, 1, 200, {}, x, dy);
    for (const int64_t begin : {1, 5, 16, 33, 150}) {
      const auto part =
          this->RunKernel(activation, 1, 1, 200 - begin, {}, {x.begin() + begin, x.end()},
                          {dy.begin() + begin, dy.end()});
      ExpectSameBits(part.y, {whole.y.begin() + begin, whole.y.end()});
      ExpectSameBits(part.dx, {whole.dx.begin() + begin, whole.dx.end()});
    }
  }
}

TYPED_TEST(ActivationOf, ATileHasTheBitsOfTheWholeAndLeavesTheRestAlone) {
  constexpr int64_t kRows = 5, kWidth = 100, kBegin = 37, kColumns = 43;
  const auto x = As<TypeParam>(RandomFloats(kRows * kWidth, 1, 3.0f));
  const auto bias = RandomFloats(kWidth, 2);
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    const auto whole = this->RunKernel(activation, 1, kRows, kWidth, bias, x, x);
    auto pre = x, y = x;
    BiasActivationTile(activation, kRows, kColumns, kWidth, bias.data() + kBegin,
                       pre.data() + kBegin, y.data() + kBegin);
    for (int64_t i = 0; i < kRows * kWidth; ++i) {
      const bool inside = i % kWidth >= kBegin && i % kWidth < kBegin + kColumns;
      EXPECT_EQ(pre[i], inside ? whole.pre[i] : x[i]) << i;
      EXPECT_EQ(y[i], inside ? whole.y[i] : x[i]) << i;
    }
  }
}

TYPED_TEST(ActivationOf, PassesOnWhatIsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    const auto out =
        this->RunKernel(activation, 1, 1, 3, {}, As<TypeParam>({nan, 1.0f, nan}),
                        As<TypeParam>({activation == Activation::kRelu ? nan : 1.0f, 1.0f, nan}));
    for (const int64_t i : {0, 2}) {
      EXPECT_TRUE(std::isnan(ToDouble(out.y[i])) && std::isnan(ToDouble(out.dx[i])));
    }
    EXPECT_TRUE(std::isfinite(ToDouble(out.y[1])));
  }
}

TEST(Activation, ReferenceGradientIsTheFiniteDifference) {
  const auto x = ToDouble(RandomFloats(50, 1, 4.0f));
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    std::vector<double> gradient;
    for (const double u : x) gradient.push_back(ActivationGradientRef(activation, u));
    const auto loss = [&](const std::vector<double>& at) {
      double sum = 0;
      for (const double u : at) sum += ActivationRef(activation, u);
      return sum;
    };
    ExpectClose(gradient, FiniteDifferences(x, loss), 1e-8, 1e-8);
  }
}

}  // namespace
}  // namespace tug::kernels
