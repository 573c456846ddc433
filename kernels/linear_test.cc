#include "kernels/linear.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_test_support.h"
#include "kernels/linear_ref.h"

namespace tug::kernels {
namespace {

constexpr WeightOrder kOrders[] = {WeightOrder::kInOut, WeightOrder::kOutIn};

struct Shape {
  int64_t rows;
  int64_t in;
  int64_t out;
};

// Every size of kTestSizes as rows, in and out, and a shape with more tiles than one each way.
std::vector<Shape> Shapes() {
  std::vector<Shape> shapes = {{1, 1, 1}, {200, 70, 600}, {31, 600, 65}};
  for (const int64_t size : kTestSizes) {
    const int64_t other = size > 100 ? 37 : std::max<int64_t>(size, 1);
    shapes.push_back({size, 33, other});
    shapes.push_back({32, size, other});
    shapes.push_back({other, 31, size});
  }
  return shapes;
}

// What a call gives on one thread is near the reference, and has the same bits on two and three.
template <typename Call>
void ExpectOnAnyNumberOfThreads(const Call& call, const std::vector<double>& expected,
                                double absolute) {
  ThreadPool one(1), two(2), three(3);
  const std::vector<float> result = call(one);
  ExpectClose(result, expected, absolute, 1e-6);
  ExpectSameBits(call(two), result);
  ExpectSameBits(call(three), result);
}

void ExpectMatchesReference(WeightOrder order, const Shape& s, bool bias, bool accumulate) {
  SCOPED_TRACE(testing::Message() << "order " << static_cast<int>(order) << " rows " << s.rows
                                  << " in " << s.in << " out " << s.out << " bias " << bias
                                  << " accumulate " << accumulate);
  const LinearRef<double> ref{order, s.in, s.out};
  const auto x = RandomFloats(s.rows * s.in, 1), w = RandomFloats(s.in * s.out, 2);
  const auto b = RandomFloats(s.out, 3), dy = RandomFloats(s.rows * s.out, 4);
  const auto dx = RandomFloats(s.rows * s.in, 5), dw = RandomFloats(s.in * s.out, 6);
  const auto x_d = ToDouble(x), w_d = ToDouble(w), b_d = ToDouble(b), dy_d = ToDouble(dy);
  LinearWeights<float> weights(s.in, s.out, order);
  ThreadPool pool(2);
  weights.Bind(pool, w.data());
  const auto bound = [](int64_t k) { return 1e-6 + 6e-8 * static_cast<double>(k); };

  std::vector<double> expected(dy.size());
  ref.Forward(s.rows, x_d.data(), w_d.data(), bias ? b_d.data() : nullptr, expected.data());
  ExpectOnAnyNumberOfThreads(
      [&](ThreadPool& threads) {
        std::vector<float> y(dy.size(), std::numeric_limits<float>::quiet_NaN());
        LinearForward(threads, weights, s.rows, x.data(), bias ? b.data() : nullptr, y.data());
        return y;
      },
      expected, bound(s.in));

  expected = ToDouble(dx);
  ref.InputGradient(s.rows, dy_d.data(), w_d.data(), accumulate, expected.data());
  ExpectOnAnyNumberOfThreads(
      [&](ThreadPool& threads) {
        auto result = accumulate
                          ? dx
                          : std::vector<float>(dx.size(), std::numeric_limits<float>::quiet_NaN());
        LinearInputGradient(threads, weights, s.rows, dy.data(), accumulate, result.data());
        return result;
      },
      expected, bound(s.out));

  expected = ToDouble(dw);
  ref.WeightGradient(s.rows, x_d.data(), dy_d.data(), accumulate, expected.data());
  ExpectOnAnyNumberOfThreads(
      [&](ThreadPool& threads) {
        auto result = accumulate
                          ? dw
                          : std::vector<float>(dw.size(), std::numeric_limits<float>::quiet_NaN());
        LinearWeightGradient(threads, order, s.in, s.out, s.rows, x.data(), dy.data(), accumulate,
                             result.data());
        return result;
      },
      expected, bound(s.rows));
}

TEST(Linear, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const WeightOrder order : kOrders) {
    for (const Shape& shape : Shapes()) {
      ExpectMatchesReference(order, shape, /*bias=*/false, /*accumulate=*/false);
      ExpectMatchesReference(order, shape, /*bias=*/true, /*accumulate=*/true);
    }
  }
}

}  // namespace
}  // namespace tug::kernels
