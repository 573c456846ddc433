// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/toolkit/linear_cuda.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/cuda/toolkit/linear_elements_cuda.h"
#include "kernels/reference/activation_ref.h"
#include "kernels/reference/kernel_test_support.h"
#include "kernels/reference/linear_ref.h"

namespace tug::kernels::cuda {
namespace {

constexpr WeightOrder kOrders[] = {WeightOrder::kInOut, WeightOrder::kOutIn};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Shape {
  int64_t rows;
  int64_t in;
  int64_t out;
};

// Every size of kTestSizes as rows, in and out; shapes of several tiles; shapes into which cuBLASLt
// can fuse GELU (out a multiple of 8) and others.
std::vector<Shape> Shapes() {
  std::vector<Shape> shapes = {{1, 1, 1}, {200, 70, 600}, {31, 600, 65}, {1, 128, 700}};
  for (const int64_t size : kTestSizes) {
    const int64_t other = size > 100 ? 37 : std::max<int64_t>(size, 1);
    shapes.push_back({size, 33, other});
    shapes.push_back({32, size, other});
    shapes.push_back({other, 31, size});
  }
  return shapes;
}

// Error bound for sums of k products of numbers below 1, as in matmul_cuda_test.cc.
template <typename T>
double SumBound(int64_t k) {
  return 1e-6 + (std::is_same_v<T, Bf16> ? 2.4e-7 : 6e-8) * static_cast<double>(k);
}

template <typename T>
class LinearCuda : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (this->IsSkipped()) return;
    auto handle = MatMulHandle::Create();
    ASSERT_TRUE(handle.ok()) << handle.status();
    handle_.emplace(*std::move(handle));
  }

  // One layer and its operands; all values are exact in T.
  struct Layer {
    Layer(WeightOrder of_order, const Shape& of_shape, const Stream& stream)
        : order(of_order),
          shape(of_shape),
          ref{order, shape.in, shape.out},
          x(As<T>(RandomFloats(shape.rows * shape.in, 1))),
          w(As<T>(RandomFloats(shape.in * shape.out, 2))),
          dy(As<T>(RandomFloats(shape.rows * shape.out, 3))),
          bias(RandomFloats(shape.out, 4)),
          x_gpu(x, stream),
          w_gpu(w, stream),
          dy_gpu(dy, stream),
          bias_gpu(bias, stream),
          weights{shape.in, shape.out, order, w_gpu.data()} {}

    WeightOrder order;
    Shape shape;
    LinearRef<double> ref;
    std::vector<T> x, w, dy;
    std::vector<float> bias;
    OnDevice<T> x_gpu, w_gpu, dy_gpu;
    OnDevice<float> bias_gpu;
    LinearWeights<T> weights;
  };

  static void ExpectOk(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

  static std::vector<double> Pre(const Layer& layer, bool with_bias) {
    const auto [rows, in, out] = layer.shape;
    std::vector<double> pre(rows * out);
    const auto bias = ToDouble(layer.bias);
    layer.ref.Forward(rows, ToDouble(layer.x).data(), ToDouble(layer.w).data(),
                      with_bias ? bias.data() : nullptr, pre.data());
    return pre;
  }

  // If the result is Bf16, either a bias below 1 is rounded first, or the product, which is no
  // larger than result and bias together; each to half a unit of its last place.
  template <typename Y>
  static void ExpectCloseToPre(const std::vector<Y>& y, const std::vector<double>& pre,
                               int64_t in) {
    ExpectClose(y, pre, SumBound<T>(in) + kRounding<Y>, 2 * kRounding<Y> + 1e-6);
  }

  template <typename B, typename Y>
  absl::Status Forward(const Layer& layer, const B* bias, Y* y, int64_t y_stride) {
    return LinearForward<T, Y, B>(*handle_, layer.weights,
                                  {layer.shape.rows, layer.x_gpu.data(), bias, y, y_stride},
                                  stream());
  }

  template <typename Y>
  void ExpectForwardMatches(const Layer& layer, bool with_bias) {
    const auto pre = Pre(layer, with_bias);
    const auto run = [&] {
      const OnDevice y(As<Y>(std::vector<float>(pre.size(), kNan)), stream());
      ExpectOk(
          Forward(layer, with_bias ? layer.bias_gpu.data() : nullptr, y.data(), layer.shape.out));
      return y.Read();
    };
    const auto y = run();
    ExpectCloseToPre(y, pre, layer.shape.in);
    ExpectSameBits(run(), y);
  }

  void ExpectActivationMatches(const Layer& layer, Activation activation, bool with_bias) {
    const auto expected_pre = Pre(layer, with_bias);
    const auto nothing = As<T>(std::vector<float>(expected_pre.size(), kNan));
    const OnDevice pre(nothing, stream()), y(nothing, stream());
    ExpectOk(LinearActivationForward<T, float>(
        *handle_, layer.weights,
        {layer.shape.rows, layer.x_gpu.data(), with_bias ? layer.bias_gpu.data() : nullptr,
         activation, pre.data(), y.data()},
        stream()));
    ExpectCloseToPre(pre.Read(), expected_pre, layer.shape.in);
    auto expected = expected_pre;
    for (double& u : expected) u = ActivationRef<double>(activation, u);
    // Slopes are at most 1.13, so y is off by 1.13 times the error of pre, which is relative to
    // pre, not to y. A hardware tanh is off by up to 2^-11 of its 1, times half of a pre below 8
    // (beyond, y is pre or 0).
    const double of_tanh = activation == Activation::kGelu ? 0x1p-9 : 0;
    const double largest_pre = activation == Activation::kGelu ? 8 : 0;
    ExpectClose(
        y.Read(), expected,
        1.13 * (SumBound<T>(layer.shape.in) + kRounding<T> * (1 + 2 * largest_pre)) + of_tanh,
        3 * kRounding<T> + 1e-5);
  }

  void ExpectInputGradientMatches(const Layer& layer, bool accumulate) {
    ExpectInputGradientMatches(layer, layer.dy_gpu.data(), layer.shape.out, accumulate);
  }
  void ExpectInputGradientMatches(const Layer& layer, const T* dy, int64_t dy_stride,
                                  bool accumulate) {
    const auto [rows, in, out] = layer.shape;
    const auto before =
        As<T>(accumulate ? RandomFloats(rows * in, 5) : std::vector<float>(rows * in, kNan));
    auto expected = ToDouble(before);
    layer.ref.InputGradient(rows, ToDouble(layer.dy).data(), ToDouble(layer.w).data(), accumulate,
                            expected.data());
    const OnDevice dx(before, stream());
    ExpectOk(LinearInputGradient<T>(*handle_, layer.weights,
                                    {rows, dy, dy_stride, accumulate, dx.data()}, stream()));
    ExpectClose(dx.Read(), expected, SumBound<T>(out), kRounding<T> + 1e-6);
  }

  void ExpectWeightGradientMatches(const Layer& layer, bool accumulate) {
    ExpectWeightGradientMatches(layer, layer.dy_gpu.data(), layer.shape.out, accumulate);
  }
  void ExpectWeightGradientMatches(const Layer& layer, const T* dy, int64_t dy_stride,
                                   bool accumulate) {
    const auto [rows, in, out] = layer.shape;
    const auto before = accumulate ? RandomFloats(in * out, 6) : std::vector<float>(in * out, kNan);
    auto expected = ToDouble(before);
    layer.ref.WeightGradient(rows, ToDouble(layer.x).data(), ToDouble(layer.dy).data(), accumulate,
                             expected.data());
    const auto run = [&] {
      const OnDevice dw(before, stream());
      const auto& [rows, in, out] = layer.shape;
      ExpectOk(LinearWeightGradient<T>(
          *handle_,
          {in, out, layer.order, rows, layer.x_gpu.data(), dy, dy_stride, accumulate, dw.data()},
          stream()));
      return dw.Read();
    };
    const auto dw = run();
    ExpectClose(dw, expected, SumBound<T>(rows), 1e-6);
    ExpectSameBits(run(), dw);
  }

  std::optional<MatMulHandle> handle_;
};

using Types = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(LinearCuda, Types);

TYPED_TEST(LinearCuda, MatchesTheReferenceAtEverySizeAndRepeatsItsBits) {
  for (const WeightOrder order : kOrders) {
    for (const Shape& shape : Shapes()) {
      SCOPED_TRACE(testing::Message() << "order " << static_cast<int>(order) << " rows "
                                      << shape.rows << " in " << shape.in << " out " << shape.out);
      const typename TestFixture::Layer layer(order, shape, this->stream());
      for (const bool yes : {false, true}) {
        this->template ExpectForwardMatches<TypeParam>(layer, yes);
        this->template ExpectForwardMatches<float>(layer, yes);
        this->ExpectActivationMatches(layer, Activation::kGelu, yes);
        this->ExpectActivationMatches(layer, Activation::kRelu, yes);
        this->ExpectInputGradientMatches(layer, yes);
        this->ExpectWeightGradientMatches(layer, yes);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TYPED_TEST(LinearCuda, MatchesTheReferenceAtTheShapesOfAModel) {
  const typename TestFixture::Layer mlp(WeightOrder::kInOut, {32, 96, 3072}, this->stream());
  this->ExpectActivationMatches(mlp, Activation::kGelu, true);
  this->ExpectInputGradientMatches(mlp, true);
  this->ExpectWeightGradientMatches(mlp, true);
  const typename TestFixture::Layer head(WeightOrder::kOutIn, {3, 40, 50257}, this->stream());
  this->template ExpectForwardMatches<float>(head, false);
  this->ExpectInputGradientMatches(head, false);
  this->ExpectWeightGradientMatches(head, true);
}

TYPED_TEST(LinearCuda, TakesABiasThatIsTooLongToFuse) {
  const typename TestFixture::Layer layer(WeightOrder::kInOut, {2, 3, 140000}, this->stream());
  this->template ExpectForwardMatches<TypeParam>(layer, true);
  this->ExpectActivationMatches(layer, Activation::kGelu, true);
}

// The bias of a layer can be at any position among a block's parameters.
TYPED_TEST(LinearCuda, TakesABiasAtAnyBoundary) {
  const typename TestFixture::Layer layer(WeightOrder::kInOut, {5, 24, 64}, this->stream());
  auto shifted = layer.bias;
  shifted.insert(shifted.begin(), 7.0f);
  const OnDevice bias(shifted, this->stream());
  const auto forward = [&](const float* at) {
    const OnDevice y(std::vector<TypeParam>(5 * 64), this->stream());
    this->ExpectOk(this->Forward(layer, at, y.data(), 64));
    return y.Read();
  };
  ExpectSameBits(forward(bias.data() + 1), forward(layer.bias_gpu.data()));
}

// AddBias, which follows a product that does not add the bias, on ranges within larger matrices.
TYPED_TEST(LinearCuda, AddsABiasWithTheSameBitsAtAnyBoundary) {
  constexpr int64_t kRows = 3;
  for (const int64_t width : {1, 31, 64, 1023, 4096}) {
    for (const int64_t offset : {0, 1}) {
      SCOPED_TRACE(testing::Message() << width << " from " << offset);
      const auto bias = RandomFloats(width + offset, 1);
      auto expected = As<TypeParam>(RandomFloats(kRows * width + offset, 2));
      const OnDevice y(expected, this->stream()), bias_gpu(bias, this->stream());
      for (int64_t i = 0; i < kRows * width; ++i) {
        TypeParam& at = expected[i + offset];
        at = As<TypeParam>({static_cast<float>(ToDouble(at)) + bias[i % width + offset]})[0];
      }
      this->ExpectOk(AddBias(kRows, width, bias_gpu.data() + offset, y.data() + offset, width,
                             this->stream()));
      ExpectSameBits(y.Read(), expected);
    }
  }
}

// Logits of a vocabulary with aligned rows, and with unaligned rows.
TYPED_TEST(LinearCuda, MatchesTheReferenceOnRowsThatLieApart) {
  const Shape shape = {5, 24, 65};
  const auto [rows, in, out] = shape;
  for (const WeightOrder order : kOrders) {
    for (const int64_t stride : {out + 2, (out + 7) / 8 * 8}) {
      SCOPED_TRACE(testing::Message() << "order " << static_cast<int>(order) << " " << stride);
      const typename TestFixture::Layer layer(order, shape, this->stream());
      const auto nothing = std::vector<float>(rows * stride, kNan);
      for (const bool with_bias : {false, true}) {
        const OnDevice y(nothing, this->stream());
        const float* const bias = with_bias ? layer.bias_gpu.data() : nullptr;
        this->ExpectOk(this->Forward(layer, bias, y.data(), stride));
        this->ExpectCloseToPre(WithoutStride(y.Read(), out, stride), this->Pre(layer, with_bias),
                               in);
      }
      const OnDevice dy(WithStride(layer.dy, out, stride), this->stream());
      this->ExpectInputGradientMatches(layer, dy.data(), stride, true);
      this->ExpectWeightGradientMatches(layer, dy.data(), stride, true);
    }
  }
}

TYPED_TEST(LinearCuda, AddsABiasToRowsThatLieApart) {
  constexpr int64_t kRows = 3, kWidth = 65;
  const auto values = As<TypeParam>(RandomFloats(kRows * kWidth, 2));
  const OnDevice bias(RandomFloats(kWidth, 1), this->stream());
  const OnDevice together(values, this->stream());
  this->ExpectOk(AddBias(kRows, kWidth, bias.data(), together.data(), kWidth, this->stream()));
  for (const int64_t stride : {kWidth + 2, (kWidth + 7) / 8 * 8}) {
    const OnDevice apart(WithStride(values, kWidth, stride), this->stream());
    this->ExpectOk(AddBias(kRows, kWidth, bias.data(), apart.data(), stride, this->stream()));
    ExpectSameBits(WithoutStride(apart.Read(), kWidth, stride), together.Read());
  }
}

using LinearBf16Cuda = LinearCuda<Bf16>;

// A bias in Bf16 gives the same bits as a float bias that is rounded for each product.
TEST_F(LinearBf16Cuda, TakesABiasThatIsRounded) {
  constexpr int64_t kOut = 64;
  const Layer layer(WeightOrder::kInOut, {5, 24, kOut}, stream());
  auto rounded = As<Bf16>(layer.bias);
  const OnDevice bias(rounded, stream());
  rounded.insert(rounded.begin(), Bf16{});
  const OnDevice shifted(rounded, stream());
  for (const bool gelu : {false, true}) {
    const auto forward = [&]<typename B>(const B* at) {
      const OnDevice y(std::vector<Bf16>(5 * kOut), stream()), pre(y.Read(), stream());
      ExpectOk(gelu ? LinearActivationForward<Bf16, B>(
                          *handle_, layer.weights,
                          {5, layer.x_gpu.data(), at, Activation::kGelu, pre.data(), y.data()},
                          stream())
                    : Forward(layer, at, y.data(), kOut));
      return y.Read();
    };
    const auto expected = forward(layer.bias_gpu.data());
    ExpectSameBits(forward(bias.data()), expected);
    ExpectSameBits(forward(shifted.data() + 1), expected);
  }
}

TEST_F(LinearBf16Cuda, TakesARoundedBiasThatIsTooLongToFuse) {
  Layer layer(WeightOrder::kInOut, {2, 3, 140000}, stream());
  auto rounded = As<Bf16>(layer.bias);
  std::transform(rounded.begin(), rounded.end(), layer.bias.begin(), FloatFromBf16Ref);
  rounded.insert(rounded.begin(), Bf16{});
  const OnDevice bias(rounded, stream());
  const OnDevice y(std::vector<Bf16>(2 * 140000), stream());
  ExpectOk(Forward(layer, bias.data() + 1, y.data(), 140000));
  ExpectCloseToPre(y.Read(), Pre(layer, true), 3);
}

}  // namespace
}  // namespace tug::kernels::cuda
