// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/reference/kernel_test_support.h"
#include "kernels/reference/matmul_ref.h"

namespace tug::kernels {
namespace {

constexpr Transpose kNo = Transpose::kNo;
constexpr Transpose kYes = Transpose::kYes;

struct Product {
  Transpose ta;
  Transpose tb;
  int64_t m;
  int64_t n;
  int64_t k;
  bool accumulate;

  // Rows are longer than necessary, so that a wrong stride is detected.
  int64_t lda() const { return (ta == kYes ? m : k) + 3; }
  int64_t ldb() const { return (tb == kYes ? k : n) + 5; }
  int64_t ldc() const { return n + 2; }
  std::vector<float> A() const { return RandomFloats((ta == kYes ? k : m) * lda(), 1); }
  std::vector<float> B() const { return RandomFloats((tb == kYes ? n : k) * ldb(), 2); }
  template <typename T>
  MatMulArgs<T> Args(const std::vector<T>& a, const std::vector<T>& b, std::vector<T>& c) const {
    return {m, n, k, {a.data(), lda(), ta}, {b.data(), ldb(), tb}, c.data(), ldc(), accumulate};
  }
};

std::vector<float> Multiply(const Product& p, std::vector<float> c) {
  const auto a = p.A(), b = p.B();
  MatMulInTask(p.Args(a, b, c));
  return c;
}

void ExpectMatchesReference(const Product& p) {
  SCOPED_TRACE(testing::Message() << "ta " << static_cast<bool>(p.ta) << " tb "
                                  << static_cast<bool>(p.tb) << " m " << p.m << " n " << p.n
                                  << " k " << p.k << " accumulate " << p.accumulate);
  const auto a = ToDouble(p.A()), b = ToDouble(p.B());
  const auto c = RandomFloats(p.m * p.ldc(), 3);
  auto expected = ToDouble(c);
  MatMulRef(p.Args(a, b, expected));
  // For sums of k products of numbers below 1, each rounding is at most 2^-24 of a partial sum
  // below k.
  ExpectClose(Multiply(p, c), expected, 1e-6 + 6e-8 * static_cast<double>(p.k), 1e-6);
}

TEST(MatMulInTask, MatchesTheReferenceInEveryFormAtEverySize) {
  for (const Transpose ta : {kNo, kYes}) {
    for (const Transpose tb : {kNo, kYes}) {
      for (const bool accumulate : {false, true}) {
        for (const int64_t size : kTestSizes) {
          const int64_t other = size > 100 ? 37 : size;
          ExpectMatchesReference({ta, tb, size, other, 33, accumulate});
          ExpectMatchesReference({ta, tb, other, size, 32, accumulate});
          ExpectMatchesReference({ta, tb, 31, other, size, accumulate});
        }
        ExpectMatchesReference({ta, tb, 200, 600, 65, accumulate});
      }
    }
  }
}

TEST(MatMulInTask, NeverReadsTheResultItDoesNotAddTo) {
  const std::vector<float> nan(70 * 35, std::numeric_limits<float>::quiet_NaN());
  for (const Transpose tb : {kNo, kYes}) {
    const auto c = Multiply({kNo, tb, 70, 33, 40, false}, nan);
    for (int64_t i = 0; i < 70; ++i) {
      for (int64_t j = 0; j < 33; ++j) ASSERT_FALSE(std::isnan(c[i * 35 + j]));
    }
  }
}

// loss = sum(w * op(A) op(B)). Its gradients are products, too.
TEST(MatMulInTask, ReferenceProductsAreTheGradientsOfTheProduct) {
  const int64_t m = 3, n = 4, k = 5;
  const auto a = ToDouble(RandomFloats(m * k, 1));
  const auto b = ToDouble(RandomFloats(k * n, 2));
  const auto w = ToDouble(RandomFloats(m * n, 3));
  const auto loss = [&](const std::vector<double>& a_at, const std::vector<double>& b_at) {
    std::vector<double> c(m * n);
    MatMulRef<double>({m, n, k, {a_at.data(), k}, {b_at.data(), n}, c.data(), n});
    return Dot(w, c);
  };
  std::vector<double> da(m * k);
  std::vector<double> db(k * n);
  MatMulRef<double>({m, k, n, {w.data(), n}, {b.data(), n, kYes}, da.data(), k});
  MatMulRef<double>({k, n, m, {a.data(), k, kYes}, {w.data(), n}, db.data(), n});
  ExpectClose(da, FiniteDifferences(a, [&](const auto& at) { return loss(at, b); }), 1e-8, 1e-8);
  ExpectClose(db, FiniteDifferences(b, [&](const auto& at) { return loss(a, at); }), 1e-8, 1e-8);
}

}  // namespace
}  // namespace tug::kernels
