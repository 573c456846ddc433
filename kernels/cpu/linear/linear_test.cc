// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/kernel_test_support.h"
#include "kernels/reference/linear_ref.h"

namespace tug::kernels {
namespace {

constexpr WeightOrder kOrders[] = {WeightOrder::kInOut, WeightOrder::kOutIn};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Shape {
  int64_t rows;
  int64_t in;
  int64_t out;
};

// Every size of kTestSizes as rows, in and out, and shapes of several tiles in each dimension.
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

// The result of a call on one thread is close to the reference, and has the same bits on two and
// three threads. For sums of k products of numbers below 1, each rounding is at most 2^-24 of a
// partial sum below k; rounding to bf16 adds half a unit in the last place.
template <typename Call>
void ExpectMatches(const Call& call, const std::vector<double>& expected, int64_t k) {
  ThreadPool one(1), two(2), three(3);
  const auto result = call(one);
  using Result = typename decltype(result)::value_type;
  const double sums = 1e-6 + 6e-8 * static_cast<double>(k);
  ExpectClose(result, expected, sums, kRounding<Result> + 1e-6);
  ExpectSameBits(call(two), result);
  ExpectSameBits(call(three), result);
}

template <typename T>
class LinearTest : public testing::Test {
 protected:
  // One layer and its operands; all values are exact in T.
  struct Layer {
    Layer(WeightOrder of_order, const Shape& of_shape)
        : order(of_order),
          shape(of_shape),
          ref{order, shape.in, shape.out},
          x(As<T>(RandomFloats(shape.rows * shape.in, 1))),
          w(As<T>(RandomFloats(shape.in * shape.out, 2))),
          dy(As<T>(RandomFloats(shape.rows * shape.out, 3))),
          bias(RandomFloats(shape.out, 4)),
          weights(shape.in, shape.out, order) {
      ThreadPool pool(2);
      weights.Bind(pool, w.data());
    }

    WeightOrder order;
    Shape shape;
    LinearRef<double> ref;
    std::vector<T> x, w, dy;
    std::vector<float> bias;
    LinearWeights<T> weights;
  };

  template <typename Y>
  static void ExpectForwardMatches(const Layer& layer, bool with_bias) {
    const auto [rows, in, out] = layer.shape;
    std::vector<double> expected(rows * out);
    const auto bias = ToDouble(layer.bias);
    layer.ref.Forward(rows, ToDouble(layer.x).data(), ToDouble(layer.w).data(),
                      with_bias ? bias.data() : nullptr, expected.data());
    const auto call = [&](ThreadPool& pool) {
      auto y = As<Y>(std::vector<float>(expected.size(), kNan));
      LinearForward<T, Y>(pool, layer.weights,
                          {layer.shape.rows, layer.x.data(),
                           with_bias ? layer.bias.data() : nullptr, y.data(), layer.shape.out});
      return y;
    };
    ExpectMatches(call, expected, in);
  }

  static void ExpectInputGradientMatches(const Layer& layer, bool accumulate) {
    const auto [rows, in, out] = layer.shape;
    const auto before =
        As<T>(accumulate ? RandomFloats(rows * in, 5) : std::vector<float>(rows * in, kNan));
    auto expected = ToDouble(before);
    layer.ref.InputGradient(rows, ToDouble(layer.dy).data(), ToDouble(layer.w).data(), accumulate,
                            expected.data());
    const auto call = [&](ThreadPool& pool) {
      auto dx = before;
      LinearInputGradient(
          pool, layer.weights,
          {layer.shape.rows, layer.dy.data(), layer.shape.out, accumulate, dx.data()});
      return dx;
    };
    ExpectMatches(call, expected, out);
  }

  static void ExpectWeightGradientMatches(const Layer& layer, bool accumulate) {
    const auto [rows, in, out] = layer.shape;
    const auto before = accumulate ? RandomFloats(in * out, 6) : std::vector<float>(in * out, kNan);
    auto expected = ToDouble(before);
    layer.ref.WeightGradient(rows, ToDouble(layer.x).data(), ToDouble(layer.dy).data(), accumulate,
                             expected.data());
    const auto call = [&](ThreadPool& pool) {
      auto dw = before;
      const auto& [rows, in, out] = layer.shape;
      LinearWeightGradient<T>(pool, {in, out, layer.order, rows, layer.x.data(), layer.dy.data(),
                                     out, accumulate, dw.data()});
      return dw;
    };
    ExpectMatches(call, expected, rows);
  }
};

using Types = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(LinearTest, Types);

TYPED_TEST(LinearTest, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const WeightOrder order : kOrders) {
    for (const Shape& shape : Shapes()) {
      SCOPED_TRACE(testing::Message() << "order " << static_cast<int>(order) << " rows "
                                      << shape.rows << " in " << shape.in << " out " << shape.out);
      const typename TestFixture::Layer layer(order, shape);
      for (const bool yes : {false, true}) {
        TestFixture::template ExpectForwardMatches<TypeParam>(layer, yes);
        TestFixture::template ExpectForwardMatches<float>(layer, yes);
        TestFixture::ExpectInputGradientMatches(layer, yes);
        TestFixture::ExpectWeightGradientMatches(layer, yes);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// Bf16: rows are processed in two or three parts, by tiles as wide as dw (which has 31 or 70
// columns) and by narrower ones.
TYPED_TEST(LinearTest, WeightGradientSumsOverManyRows) {
  for (const WeightOrder order : kOrders) {
    for (const Shape& shape : {Shape{1100, 70, 200}, Shape{2300, 31, 150}}) {
      SCOPED_TRACE(testing::Message() << "order " << static_cast<int>(order) << " rows "
                                      << shape.rows << " in " << shape.in << " out " << shape.out);
      const typename TestFixture::Layer layer(order, shape);
      for (const bool accumulate : {false, true}) {
        TestFixture::ExpectWeightGradientMatches(layer, accumulate);
      }
    }
  }
}

TYPED_TEST(LinearTest, ActivationIsThatOfTheStoredForwardPass) {
  for (const Shape& shape : {Shape{33, 31, 1023}, Shape{200, 70, 65}, Shape{0, 3, 5}}) {
    const typename TestFixture::Layer layer(WeightOrder::kInOut, shape);
    ThreadPool one(1), three(3);
    std::vector<TypeParam> expected_pre(layer.dy.size()), expected(layer.dy.size());
    LinearForward<TypeParam, TypeParam>(
        one, layer.weights,
        {shape.rows, layer.x.data(), layer.bias.data(), expected_pre.data(), shape.out});
    for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
      BiasActivationForward<TypeParam>(one, activation, shape.rows, shape.out, nullptr,
                                       expected_pre.data(), expected.data());
      for (ThreadPool* pool : {&one, &three}) {
        std::vector<TypeParam> pre(layer.dy.size()), y(layer.dy.size());
        LinearActivationForward(
            *pool, layer.weights,
            {shape.rows, layer.x.data(), layer.bias.data(), activation, pre.data(), y.data()});
        ExpectSameBits(pre, expected_pre);
        ExpectSameBits(y, expected);
      }
    }
  }
}

TYPED_TEST(LinearTest, ARowsBitsDoNotDependOnTheOtherRows) {
  // Two micro-batches, in one product or in two, give the same rows if their tiles are the same.
  const typename TestFixture::Layer layer(WeightOrder::kInOut, {16384, 64, 96});
  ThreadPool pool(2);
  const auto forward = [&](int64_t rows) {
    std::vector<TypeParam> y(16384 * 96);
    LinearForward<TypeParam, TypeParam>(pool, layer.weights,
                                        {rows, layer.x.data(), nullptr, y.data(), 96});
    y.resize(8192 * 96);
    return y;
  };
  ExpectSameBits(forward(8192), forward(16384));
}

TYPED_TEST(LinearTest, TakesNewWeights) {
  typename TestFixture::Layer layer(WeightOrder::kInOut, {40, 50, 70});
  layer.w = As<TypeParam>(RandomFloats(50 * 70, 7));
  ThreadPool pool(2);
  layer.weights.Bind(pool, layer.w.data());
  TestFixture::template ExpectForwardMatches<TypeParam>(layer, false);
  TestFixture::ExpectInputGradientMatches(layer, false);
}

TEST(LinearBf16, WeightsTakeFourBytesEachAndPadding) {
  // Packed twice at two bytes per element, or widened; padding is up to 32 rows and 64 columns.
  for (const Shape& shape : {Shape{0, 384, 1152}, Shape{0, 768, 50257}, Shape{0, 33, 1}}) {
    const auto bytes = static_cast<int64_t>(LinearWeights<Bf16>::SizeBytes(shape.in, shape.out));
    EXPECT_GE(bytes, 4 * shape.in * shape.out);
    EXPECT_LE(bytes, 4 * (shape.in + 63) * (shape.out + 63));
  }
  EXPECT_EQ(LinearWeights<float>::SizeBytes(384, 1152), 0u);
}

TEST(LinearBf16, FloatWeightsAreRoundedToNearest) {
  for (const WeightOrder order : kOrders) {
    const int64_t rows = 40, in = 70, out = 130;
    const auto w = RandomFloats(in * out, 1);
    const auto x = As<Bf16>(RandomFloats(rows * in, 2));
    const auto rounded = As<Bf16>(w);
    LinearWeights<Bf16> from_floats(in, out, order), from_bf16(in, out, order);
    ThreadPool pool(2);
    from_floats.Bind(pool, w.data());
    from_bf16.Bind(pool, rounded.data());
    std::vector<Bf16> y(rows * out), expected(rows * out);
    LinearForward<Bf16, Bf16>(pool, from_floats, {rows, x.data(), nullptr, y.data(), out});
    LinearForward<Bf16, Bf16>(pool, from_bf16, {rows, x.data(), nullptr, expected.data(), out});
    ExpectSameBits(y, expected);
    std::vector<Bf16> dx(rows * in), expected_dx(rows * in);
    LinearInputGradient(pool, from_floats, {rows, y.data(), out, false, dx.data()});
    LinearInputGradient(pool, from_bf16, {rows, y.data(), out, false, expected_dx.data()});
    ExpectSameBits(dx, expected_dx);
  }
}

// loss = sum(dy * y). Its gradients are the other two products, as linear.h states.
TEST(LinearReference, ProductsAreTheGradientsOfTheForwardPass) {
  const int64_t rows = 3, in = 4, out = 5;
  for (const WeightOrder order : kOrders) {
    const LinearRef<double> ref{order, in, out};
    const auto x = ToDouble(RandomFloats(rows * in, 1));
    const auto w = ToDouble(RandomFloats(in * out, 2));
    const auto dy = ToDouble(RandomFloats(rows * out, 3));
    const auto loss = [&](const std::vector<double>& x_at, const std::vector<double>& w_at) {
      std::vector<double> y(rows * out);
      ref.Forward(rows, x_at.data(), w_at.data(), nullptr, y.data());
      return Dot(dy, y);
    };
    std::vector<double> dx(x.size()), dw(w.size());
    ref.InputGradient(rows, dy.data(), w.data(), false, dx.data());
    ref.WeightGradient(rows, x.data(), dy.data(), false, dw.data());
    ExpectClose(dx, FiniteDifferences(x, [&](const auto& at) { return loss(at, w); }), 1e-8, 1e-8);
    ExpectClose(dw, FiniteDifferences(w, [&](const auto& at) { return loss(x, at); }), 1e-8, 1e-8);
  }
}

}  // namespace
}  // namespace tug::kernels
