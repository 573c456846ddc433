#include "kernels/matmul.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/kernel_test_support.h"
#include "kernels/matmul_ref.h"

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
  float beta;
};

// The matrices have rows longer than they need be, so that a mistaken stride shows.
std::vector<float> Multiply(const Product& p, std::vector<float> c) {
  const int64_t lda = (p.ta == kYes ? p.m : p.k) + 3;
  const int64_t ldb = (p.tb == kYes ? p.k : p.n) + 5;
  const auto a = RandomFloats((p.ta == kYes ? p.k : p.m) * lda, 1);
  const auto b = RandomFloats((p.tb == kYes ? p.n : p.k) * ldb, 2);
  MatMulInTask(p.ta, p.tb, p.m, p.n, p.k, a.data(), lda, b.data(), ldb, p.beta, c.data(), p.n + 2);
  return c;
}

void ExpectMatchesReference(const Product& p) {
  SCOPED_TRACE(testing::Message() << "ta " << static_cast<bool>(p.ta) << " tb "
                                  << static_cast<bool>(p.tb) << " m " << p.m << " n " << p.n
                                  << " k " << p.k << " beta " << p.beta);
  const int64_t lda = (p.ta == kYes ? p.m : p.k) + 3;
  const int64_t ldb = (p.tb == kYes ? p.k : p.n) + 5;
  const auto a = ToDouble(RandomFloats((p.ta == kYes ? p.k : p.m) * lda, 1));
  const auto b = ToDouble(RandomFloats((p.tb == kYes ? p.n : p.k) * ldb, 2));
  const auto c = RandomFloats(p.m * (p.n + 2), 3);
  auto expected = ToDouble(c);
  MatMulRef<double>(p.ta, p.tb, p.m, p.n, p.k, a.data(), lda, b.data(), ldb, p.beta,
                    expected.data(), p.n + 2);
  // Sums of k products of numbers below 1: each rounding is at most 2^-24 of a partial sum below k.
  ExpectClose(Multiply(p, c), expected, 1e-6 + 6e-8 * static_cast<double>(p.k), 1e-6);
}

TEST(MatMulInTask, MatchesTheReferenceInEveryFormAtEverySize) {
  for (const Transpose ta : {kNo, kYes}) {
    for (const Transpose tb : {kNo, kYes}) {
      for (const float beta : {0.0f, 1.0f}) {
        for (const int64_t size : kTestSizes) {
          const int64_t other = size > 100 ? 37 : size;
          ExpectMatchesReference({ta, tb, size, other, 33, beta});
          ExpectMatchesReference({ta, tb, other, size, 32, beta});
          ExpectMatchesReference({ta, tb, 31, other, size, beta});
        }
        ExpectMatchesReference({ta, tb, 200, 600, 65, beta});
      }
    }
  }
}

TEST(MatMulInTask, NeverReadsTheResultWhenBetaIsZero) {
  const std::vector<float> nan(70 * 35, std::numeric_limits<float>::quiet_NaN());
  for (const Transpose tb : {kNo, kYes}) {
    const auto c = Multiply({kNo, tb, 70, 33, 40, 0.0f}, nan);
    for (int64_t i = 0; i < 70; ++i) {
      for (int64_t j = 0; j < 33; ++j) ASSERT_FALSE(std::isnan(c[i * 35 + j]));
    }
  }
}

// loss = sum(w * op(A) op(B)); its gradients are products too, as the header says.
TEST(MatMulInTask, ReferenceProductsAreTheGradientsOfTheProduct) {
  const int64_t m = 3, n = 4, k = 5;
  const auto a = ToDouble(RandomFloats(m * k, 1));
  const auto b = ToDouble(RandomFloats(k * n, 2));
  const auto w = ToDouble(RandomFloats(m * n, 3));
  const auto loss = [&](const std::vector<double>& a_at, const std::vector<double>& b_at) {
    std::vector<double> c(m * n);
    MatMulRef<double>(kNo, kNo, m, n, k, a_at.data(), k, b_at.data(), n, 0.0, c.data(), n);
    return Dot(w, c);
  };
  std::vector<double> da(m * k);
  std::vector<double> db(k * n);
  MatMulRef<double>(kNo, kYes, m, k, n, w.data(), n, b.data(), n, 0.0, da.data(), k);
  MatMulRef<double>(kYes, kNo, k, n, m, a.data(), k, w.data(), n, 0.0, db.data(), n);
  ExpectClose(da, FiniteDifferences(a, [&](const auto& at) { return loss(at, b); }), 1e-8, 1e-8);
  ExpectClose(db, FiniteDifferences(b, [&](const auto& at) { return loss(a, at); }), 1e-8, 1e-8);
}

}  // namespace
}  // namespace tug::kernels
