#include "kernels/activation_cuda.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/activation_ref.h"
#include "kernels/cuda_test_support.h"
#include "kernels/kernel_test_support.h"

namespace tug::kernels::cuda {
namespace {

template <typename T>
struct Result {
  std::vector<T> pre, y, dx;
};

template <typename T>
class ActivationCuda : public CudaTest {
 protected:
  Result<T> RunKernel(Activation activation, int64_t rows, int64_t width,
                      const std::vector<float>& bias, const std::vector<T>& x,
                      const std::vector<T>& dy) {
    const OnDevice pre(x, stream()), y(x, stream()), dx(dy, stream());
    const OnDevice bias_gpu(bias, stream());
    absl::Status status =
        BiasActivationForward(activation, rows, width, bias.empty() ? nullptr : bias_gpu.data(),
                              pre.data(), y.data(), stream());
    EXPECT_TRUE(status.ok()) << status;
    status =
        ActivationBackward(activation, rows * width, dx.data(), pre.data(), dx.data(), stream());
    EXPECT_TRUE(status.ok()) << status;
    return {pre.Read(), y.Read(), dx.Read()};
  }

  void ExpectMatchesReference(Activation activation, int64_t rows, int64_t width, float range,
                              bool with_bias) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << width << " within " << range);
    const auto x = As<T>(RandomFloats(rows * width, 1, range));
    const auto dy = As<T>(RandomFloats(rows * width, 2));
    const auto bias = with_bias ? RandomFloats(width, 3) : std::vector<float>();
    const Result<T> out = RunKernel(activation, rows, width, bias, x, dy);
    std::vector<double> y(x.size()), dx(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const auto sum = static_cast<float>(ToDouble(x[i])) + (with_bias ? bias[i % width] : 0.0f);
      ASSERT_EQ(out.pre[i], As<T>({sum})[0]);
      const double pre = ToDouble(out.pre[i]);
      y[i] = ActivationRef(activation, pre);
      dx[i] = ToDouble(dy[i]) * ActivationGradientRef(activation, pre);
    }
    ExpectClose(out.y, y, 1e-6, 1e-6 + kRounding<T>);
    ExpectClose(out.dx, dx, 2e-6, 2e-6 + kRounding<T>);
  }
};

using ElementTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(ActivationCuda, ElementTypes);

TYPED_TEST(ActivationCuda, MatchesTheReferenceAtEverySize) {
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    for (const int64_t size : kTestSizes) {
      for (const bool with_bias : {false, true}) {
        this->ExpectMatchesReference(activation, 2, size, 3.0f, with_bias);
        this->ExpectMatchesReference(activation, size, 17, 10.0f, with_bias);
      }
    }
    this->ExpectMatchesReference(activation, 1100, 300, 4.0f, true);
    this->ExpectMatchesReference(activation, 1, 1000, 1e4f, false);
  }
}

// In the middle of matrices whose first element must stay.
TYPED_TEST(ActivationCuda, HasTheSameBitsOffTheBoundariesOfVectors) {
  constexpr int64_t kRows = 3, kWidth = 64, kSize = kRows * kWidth;
  const auto values = RandomFloats(kSize, 1, 3.0f), gradients = RandomFloats(kSize, 2);
  const auto bias = RandomFloats(kWidth, 3);
  const auto behind_zero = [](std::vector<float> floats) {
    floats.insert(floats.begin(), 0.0f);
    return floats;
  };
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    const auto expected = this->RunKernel(activation, kRows, kWidth, bias, As<TypeParam>(values),
                                          As<TypeParam>(gradients));
    const OnDevice pre(As<TypeParam>(behind_zero(values)), this->stream());
    const OnDevice y(std::vector<TypeParam>(kSize + 1), this->stream());
    const OnDevice dx(As<TypeParam>(behind_zero(gradients)), this->stream());
    const OnDevice bias_gpu(behind_zero(bias), this->stream());
    absl::Status status = BiasActivationForward(activation, kRows, kWidth, bias_gpu.data() + 1,
                                                pre.data() + 1, y.data() + 1, this->stream());
    ASSERT_TRUE(status.ok()) << status;
    status = ActivationBackward(activation, kSize, dx.data() + 1, pre.data() + 1, dx.data() + 1,
                                this->stream());
    ASSERT_TRUE(status.ok()) << status;
    const auto expect_behind_zero = [](const std::vector<TypeParam>& actual,
                                       std::vector<TypeParam> tail) {
      tail.insert(tail.begin(), TypeParam{});
      ExpectSameBits(actual, tail);
    };
    expect_behind_zero(pre.Read(), expected.pre);
    expect_behind_zero(y.Read(), expected.y);
    expect_behind_zero(dx.Read(), expected.dx);
  }
}

TYPED_TEST(ActivationCuda, PassesOnWhatIsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    const auto out =
        this->RunKernel(activation, 1, 3, {}, As<TypeParam>({nan, 1.0f, nan}),
                        As<TypeParam>({activation == Activation::kRelu ? nan : 1.0f, 1.0f, nan}));
    for (const int64_t i : {0, 2}) {
      EXPECT_TRUE(std::isnan(ToDouble(out.y[i])) && std::isnan(ToDouble(out.dx[i])));
    }
    EXPECT_TRUE(std::isfinite(ToDouble(out.y[1])));
  }
}

}  // namespace
}  // namespace tug::kernels::cuda
