// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/toolkit/matmul_cuda.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/activation_ref.h"
#include "kernels/reference/kernel_test_support.h"
#include "kernels/reference/matmul_ref.h"

namespace tug::kernels::cuda {
namespace {

constexpr Transpose kNo = Transpose::kNo;
constexpr Transpose kYes = Transpose::kYes;

struct Product {
  Transpose ta;
  Transpose tb;
  int64_t m;
  int64_t n;
  int64_t k;
  // Elements after each row, so that a wrong stride is detected.
  int64_t gap_a = 3, gap_b = 5, gap_c = 2;

  int64_t a_rows() const { return ta == kYes ? k : m; }
  int64_t b_rows() const { return tb == kYes ? n : k; }
  int64_t lda() const { return (ta == kYes ? m : k) + gap_a; }
  int64_t ldb() const { return (tb == kYes ? k : n) + gap_b; }
  int64_t ldc() const { return n + gap_c; }
  template <typename T, typename C>
  MatMulArgs<T, C> Args(const T* a, const T* b, C* c, bool accumulate) const {
    return {m, n, k, {a, lda(), ta}, {b, ldb(), tb}, c, ldc(), accumulate};
  }
};

std::ostream& operator<<(std::ostream& out, const Product& p) {
  return out << "ta " << static_cast<bool>(p.ta) << " tb " << static_cast<bool>(p.tb) << " m "
             << p.m << " n " << p.n << " k " << p.k;
}

// Error bound for sums of k products of numbers below 1. FP32: each rounding is at most 2^-24 of a
// partial sum below k. Tensor cores may truncate instead of rounding, at every addition: four times
// that.
template <typename T>
double SumBound(int64_t k) {
  return 1e-6 + (std::is_same_v<T, Bf16> ? 2.4e-7 : 6e-8) * static_cast<double>(k);
}

template <typename Types>
class MatMulCuda : public CudaTest {
 protected:
  using T = typename Types::first_type;
  using C = typename Types::second_type;

  void SetUp() override {
    CudaTest::SetUp();
    if (this->IsSkipped()) return;
    auto handle = MatMulHandle::Create();
    ASSERT_TRUE(handle.ok()) << handle.status();
    handle_.emplace(*std::move(handle));
  }

  std::vector<T> A(const Product& p) { return As<T>(RandomFloats(p.a_rows() * p.lda(), 1)); }
  std::vector<T> B(const Product& p) { return As<T>(RandomFloats(p.b_rows() * p.ldb(), 2)); }

  std::vector<double> Reference(const Product& p, bool accumulate, const std::vector<C>& c) {
    auto expected = ToDouble(c);
    MatMulRef(p.Args(ToDouble(A(p)).data(), ToDouble(B(p)).data(), expected.data(), accumulate));
    return expected;
  }

  std::vector<C> Multiply(const Product& p, bool accumulate, const std::vector<C>& c) {
    const OnDevice a(A(p), stream()), b(B(p), stream()), out(c, stream());
    const absl::Status status =
        MatMul(*handle_, p.Args(a.data(), b.data(), out.data(), accumulate), stream());
    EXPECT_TRUE(status.ok()) << status;
    return out.Read();
  }

  void ExpectMatchesReference(const Product& p, bool accumulate) {
    SCOPED_TRACE(testing::Message() << p << " accumulate " << accumulate);
    const auto c = As<C>(RandomFloats(p.m * p.ldc(), 3));
    const auto once = Multiply(p, accumulate, c);
    ExpectClose(once, Reference(p, accumulate, c), SumBound<T>(p.k), kRounding<C> + 1e-6);
    ExpectSameBits(Multiply(p, accumulate, c), once);
  }

  // cuBLASLt does not offer every epilogue for every type and stride. These it offers, and a model
  // needs: BF16 with all rows aligned to 16 bytes, also with GELU if the result is BF16.
  static bool MustFuse(const Product& p, bool with_gelu) {
    const bool types = std::is_same_v<T, Bf16> && (std::is_same_v<C, Bf16> || !with_gelu);
    const auto in_bytes = static_cast<int64_t>(sizeof(T));
    const auto out_bytes = static_cast<int64_t>(sizeof(C));
    return types && p.k > 0 && p.n % 8 == 0 && p.lda() * in_bytes % 16 == 0 &&
           p.ldb() * in_bytes % 16 == 0 && p.ldc() * out_bytes % 16 == 0;
  }

  struct Fused {
    absl::Status status;
    std::vector<C> c, pre;
  };
  Fused MultiplyFused(const Product& p, bool with_bias, bool with_gelu) {
    const std::vector<C> nothing(static_cast<size_t>(p.m * p.ldc()));
    const OnDevice a(A(p), stream()), b(B(p), stream());
    const OnDevice c(nothing, stream()), pre(nothing, stream());
    const OnDevice bias(As<C>(RandomFloats(p.n, 4)), stream());
    Epilogue<C> epilogue;
    if (with_bias) epilogue.bias = bias.data();
    if (with_gelu) epilogue.pre_gelu = pre.data();
    const absl::Status status = FusedMatMul(
        *handle_, p.Args(a.data(), b.data(), c.data(), /*accumulate=*/false), epilogue, stream());
    return {status, c.Read(), pre.Read()};
  }

  void ExpectFusedMatchesReference(const Product& p, bool with_bias, bool with_gelu) {
    SCOPED_TRACE(testing::Message() << p << " bias " << with_bias << " gelu " << with_gelu);
    auto pre = Reference(p, false, std::vector<C>(static_cast<size_t>(p.m * p.ldc())));
    const auto bias = ToDouble(As<C>(RandomFloats(p.n, 4)));
    for (int64_t i = 0; with_bias && i < p.m * p.n; ++i) {
      pre[i / p.n * p.ldc() + i % p.n] += bias[i % p.n];
    }
    const Fused fused = MultiplyFused(p, with_bias, with_gelu);
    if (absl::IsUnimplemented(fused.status) && !MustFuse(p, with_gelu)) return;
    ASSERT_TRUE(fused.status.ok()) << fused.status;
    const double sums = SumBound<T>(p.k);
    if (!with_gelu) return ExpectClose(fused.c, pre, sums, kRounding<C> + 1e-6);
    ExpectClose(fused.pre, pre, sums, kRounding<C> + 1e-6);
    auto activated = pre;
    for (double& u : activated) u = ActivationRef<double>(Activation::kGelu, u);
    // GELU's slope is at most 1.13; a hardware tanh is off by up to 2^-11 of its 1.
    ExpectClose(fused.c, activated, 1.2 * sums + 0x1p-11 * 8, kRounding<C> + 1e-6);
  }

  std::optional<MatMulHandle> handle_;
};

using TypePairs =
    testing::Types<std::pair<float, float>, std::pair<Bf16, Bf16>, std::pair<Bf16, float>>;
TYPED_TEST_SUITE(MatMulCuda, TypePairs);

TYPED_TEST(MatMulCuda, MatchesTheReferenceInEveryFormAtEverySizeAndRepeatsItsBits) {
  for (const Transpose ta : {kNo, kYes}) {
    for (const Transpose tb : {kNo, kYes}) {
      for (const bool accumulate : {false, true}) {
        for (const int64_t size : kTestSizes) {
          const int64_t other = size > 100 ? 37 : size;
          this->ExpectMatchesReference({ta, tb, size, other, 33}, accumulate);
          this->ExpectMatchesReference({ta, tb, other, size, 32}, accumulate);
          this->ExpectMatchesReference({ta, tb, 31, other, size}, accumulate);
        }
        this->ExpectMatchesReference({ta, tb, 128, 256, 64, 0, 0, 0}, accumulate);
      }
    }
  }
}

TYPED_TEST(MatMulCuda, MatchesTheReferenceAtTheShapesOfAModel) {
  this->ExpectMatchesReference({kNo, kNo, 64, 2304, 768, 0, 0, 0}, false);
  this->ExpectMatchesReference({kYes, kNo, 768, 96, 512, 0, 0, 0}, true);
  this->ExpectMatchesReference({kNo, kYes, 2, 50257, 64, 0, 0, 0}, false);
}

TYPED_TEST(MatMulCuda, NeverReadsTheResultItDoesNotAddTo) {
  using C = typename TestFixture::C;
  const auto nan = As<C>(std::vector<float>(70 * 35, std::numeric_limits<float>::quiet_NaN()));
  for (const int64_t k : {0, 40}) {
    const auto c = ToDouble(this->Multiply({kNo, kYes, 70, 33, k}, false, nan));
    for (int64_t i = 0; i < 70 * 35; ++i) ASSERT_EQ(std::isnan(c[i]), i % 35 >= 33) << i;
  }
}

TYPED_TEST(MatMulCuda, FusesBiasAndGelu) {
  for (const bool bias : {false, true}) {
    for (const bool gelu : {false, true}) {
      for (const int64_t size : kTestSizes) {
        this->ExpectFusedMatchesReference({kNo, kNo, size, 40, 33, 0, 0, 0}, bias, gelu);
        this->ExpectFusedMatchesReference({kNo, kYes, 33, size, 32, 0, 0, 0}, bias, gelu);
      }
      this->ExpectFusedMatchesReference({kNo, kNo, 64, 3072, 96, 0, 0, 0}, bias, gelu);
      this->ExpectFusedMatchesReference({kNo, kYes, 40, 768, 64, 0, 0, 0}, bias, gelu);
    }
  }
}

TYPED_TEST(MatMulCuda, SaysWhatItCannotFuse) {
  EXPECT_TRUE(absl::IsUnimplemented(this->MultiplyFused({kNo, kNo, 8, 8, 0}, true, false).status));
  EXPECT_TRUE(
      absl::IsUnimplemented(this->MultiplyFused({kNo, kNo, 8, 9, 8, 0, 0, 0}, false, true).status));
}

}  // namespace
}  // namespace tug::kernels::cuda
