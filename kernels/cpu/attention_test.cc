// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/linear/matmul_primitive.h"
#include "kernels/reference/attention_ref.h"
#include "kernels/reference/attention_test_support.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels {
namespace {

template <typename T>
AttentionResult<T> RunKernel(int threads, const AttentionShape& shape,
                             const std::vector<T>& operands, const std::vector<T>& dout, float p,
                             const DropoutKey& key = kKey) {
  ThreadPool pool(threads);
  const T nan = As<T>({std::nanf("")})[0];  // every output must be overwritten
  AttentionResult<T> r{std::vector<T>(OutSize(shape), nan),
                       std::vector<T>(OperandsSize(shape), nan),
                       std::vector<float>(shape.stats_size(), std::nanf(""))};
  const auto in = OperandsIn(shape, operands.data());
  AttentionForward<T>(pool, {shape, in, p, key, r.out.data(), r.log_sum_exp.data()});
  AttentionBackward<T>(pool, {shape, in, p, key, /*out=*/nullptr, r.log_sum_exp.data(), dout.data(),
                              OperandsIn(shape, r.gradient.data())});
  return r;
}

// On machines with bf16 products, probabilities and the gradients of scores are rounded before they
// are multiplied. Returns the error this may add, as `part` of the largest element.
template <typename T>
double RoundedFactors(double part, const std::vector<double>& expected) {
  if (std::is_same_v<T, float> || !HasBf16Products() || expected.empty()) return 0;
  const auto [least, most] = std::ranges::minmax(expected);
  return part * std::max(most, -least);
}

template <typename T>
void ExpectMatchesReference(const AttentionShape& shape, float p) {
  SCOPED_TRACE(testing::Message() << shape.batch << " x " << shape.queries << ", " << shape.keys
                                  << " x " << shape.heads << " x " << shape.head_dim << " causal "
                                  << shape.causal << " p " << p);
  const auto operands = RandomOperands<T>(shape);
  const auto dout = RandomGradient<T>(shape);
  const AttentionResult<T> one = RunKernel(1, shape, operands, dout, p);
  for (const int threads : {2, 3}) {
    const AttentionResult<T> many = RunKernel(threads, shape, operands, dout, p);
    ExpectSameBits(many.out, one.out);
    ExpectSameBits(many.gradient, one.gradient);
    ExpectSameBits(many.log_sum_exp, one.log_sum_exp);
  }
  std::vector<double> log_sum_exp;
  const AttentionResult<double> expected =
      RunReference(shape, ToDouble(operands), ToDouble(dout), p, log_sum_exp);
  ExpectClose(one.log_sum_exp, log_sum_exp, 2e-6, 1e-6);
  ExpectClose(one.out, expected.out, 5e-6 + RoundedFactors<T>(0x1p-8, expected.out),
              5e-6 + kRounding<T>);
  ExpectClose(one.gradient, expected.gradient, 2e-5 + RoundedFactors<T>(0x1p-7, expected.gradient),
              1e-5 + kRounding<T>);
}

template <typename T>
class Attention : public testing::Test {};
using Types = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(Attention, Types);

TYPED_TEST(Attention, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const float p : {0.0f, 0.2f}) {
    for (const bool causal : {true, false}) {
      for (const int64_t seq : {0, 1, 31, 32, 33, 64, 65, 130}) {
        ExpectMatchesReference<TypeParam>(
            {.batch = 2, .queries = seq, .keys = seq, .heads = 3, .head_dim = 8, .causal = causal},
            p);
      }
      for (const int64_t head_dim : {1, 31, 32, 33}) {
        ExpectMatchesReference<TypeParam>({.batch = 1,
                                           .queries = 20,
                                           .keys = 20,
                                           .heads = 2,
                                           .head_dim = head_dim,
                                           .causal = causal},
                                          p);
      }
      ExpectMatchesReference<TypeParam>(
          {.batch = 0, .queries = 20, .keys = 20, .heads = 2, .head_dim = 8, .causal = causal}, p);
      ExpectMatchesReference<TypeParam>(
          {.batch = 1, .queries = 256, .keys = 256, .heads = 2, .head_dim = 64, .causal = causal},
          p);
    }
  }
  ExpectMatchesReference<TypeParam>(
      {.batch = 1, .queries = 1023, .keys = 1023, .heads = 1, .head_dim = 16, .causal = true},
      0.1f);
}

TYPED_TEST(Attention, CrossAttentionMatchesTheReference) {
  for (const float p : {0.0f, 0.2f}) {
    for (const int64_t queries : {0, 1, 31, 64, 65, 130}) {
      for (const int64_t keys : {1, 32, 33, 100}) {
        ExpectMatchesReference<TypeParam>(
            {.batch = 2, .queries = queries, .keys = keys, .heads = 2, .head_dim = 9}, p);
      }
    }
    ExpectMatchesReference<TypeParam>(
        {.batch = 1, .queries = 5, .keys = 1023, .heads = 1, .head_dim = 16}, p);
  }
}

TYPED_TEST(Attention, PaddedKeysAreNotReachedAndTheirGradientsAreZero) {
  const std::vector<int32_t> counts = {1, 31, 64, 65, 100};
  for (const float p : {0.0f, 0.2f}) {
    for (const int64_t queries : {100, 40}) {
      for (const bool causal : {false, true}) {
        if (causal && queries != 100) continue;
        const AttentionShape shape{.batch = 5,
                                   .queries = queries,
                                   .keys = 100,
                                   .heads = 2,
                                   .head_dim = 8,
                                   .causal = causal,
                                   .key_counts = counts.data()};
        ExpectMatchesReference<TypeParam>(shape, p);
        auto operands = RandomOperands<TypeParam>(shape);
        const auto dout = RandomGradient<TypeParam>(shape);
        const auto before = RunKernel(1, shape, operands, dout, p);
        const auto in = OperandsIn(shape, operands.data());
        const auto gradient = OperandsIn(shape, before.gradient.data());
        for (int64_t row = 0; row < shape.batch * shape.keys; ++row) {
          if (row % shape.keys < counts[row / shape.keys]) continue;
          for (int64_t i = row * in.kv_stride; i < row * in.kv_stride + shape.width(); ++i) {
            EXPECT_EQ(ToDouble(gradient.k[i]), 0.0);
            EXPECT_EQ(ToDouble(gradient.v[i]), 0.0);
            in.k[i] = in.v[i] = As<TypeParam>({std::nanf("")})[0];
          }
        }
        const auto after = RunKernel(1, shape, operands, dout, p);
        ExpectSameBits(after.out, before.out);
        ExpectSameBits(after.gradient, before.gradient);
      }
    }
  }
}

TYPED_TEST(Attention, AnOutputDoesNotDependOnLaterPositions) {
  const AttentionShape shape{
      .batch = 1, .queries = 100, .keys = 100, .heads = 2, .head_dim = 16, .causal = true};
  auto operands = RandomOperands<TypeParam>(shape);
  const auto dout = RandomGradient<TypeParam>(shape);
  auto before = RunKernel(1, shape, operands, dout, 0).out;
  const auto other = As<TypeParam>(RandomFloats(OperandsSize(shape), 7));
  for (int64_t i = 70 * 3 * shape.width(); i < OperandsSize(shape); ++i) operands[i] = other[i];
  auto after = RunKernel(1, shape, operands, dout, 0).out;
  before.resize(70 * shape.width());
  after.resize(70 * shape.width());
  ExpectSameBits(after, before);
}

TYPED_TEST(Attention, ASamplesBitsDoNotDependOnItsBatch) {
  const std::vector<int32_t> counts = {70, 33, 64};
  AttentionShape shape{.batch = 3,
                       .queries = 70,
                       .keys = 70,
                       .heads = 2,
                       .head_dim = 16,
                       .key_counts = counts.data()};
  const auto operands = RandomOperands<TypeParam>(shape);
  const auto dout = RandomGradient<TypeParam>(shape);
  const auto all = RunKernel(2, shape, operands, dout, 0.2f);
  const auto part = [](const std::vector<TypeParam>& of, uint32_t s) {
    const auto size = static_cast<ptrdiff_t>(of.size() / 3);
    return std::vector<TypeParam>(of.begin() + s * size, of.begin() + (s + 1) * size);
  };
  shape.batch = 1;
  for (uint32_t s = 0; s < 3; ++s) {
    DropoutKey key = kKey;
    key.sample += s;
    shape.key_counts = &counts[s];
    const auto one = RunKernel(2, shape, part(operands, s), part(dout, s), 0.2f, key);
    ExpectSameBits(one.out, part(all.out, s));
    ExpectSameBits(one.gradient, part(all.gradient, s));
  }
}

// With V and dO the identity, out is the matrix of probabilities and dV its transpose; both are
// exact, since all factors of products are one or zero.
TYPED_TEST(Attention, TheBackwardPassHasTheProbabilitiesOfTheForwardPassBitForBit) {
  constexpr int64_t kSize = 130;
  for (const bool causal : {true, false}) {
    const AttentionShape shape{.batch = 1,
                               .queries = kSize,
                               .keys = kSize,
                               .heads = 1,
                               .head_dim = kSize,
                               .causal = causal};
    auto operands = RandomOperands<TypeParam>(shape);
    std::vector<TypeParam> identity(kSize * kSize);
    for (int64_t i = 0; i < kSize; ++i) identity[i * kSize + i] = As<TypeParam>({1.0f})[0];
    const auto in = OperandsIn(shape, operands.data());
    for (int64_t i = 0; i < kSize; ++i) {
      std::copy_n(&identity[i * kSize], kSize, in.v + i * in.kv_stride);
    }
    for (const float p : {0.0f, 0.2f}) {
      const auto r = RunKernel(1, shape, operands, identity, p);
      const auto dv = OperandsIn(shape, r.gradient.data()).v;
      std::vector<TypeParam> transposed(kSize * kSize);
      for (int64_t query = 0; query < kSize; ++query) {
        for (int64_t key = 0; key < kSize; ++key) {
          transposed[query * kSize + key] = dv[key * in.kv_stride + query];
        }
      }
      ExpectSameBits(transposed, r.out);
    }
  }
}

TEST(AttentionOfOneQuery, MatchesTheReferenceOnAnyNumberOfThreads) {
  for (const int64_t keys : {1, 31, 32, 33, 64, 65, 1023}) {
    for (const int64_t head_dim : {1, 31, 32, 33}) {
      const AttentionShape shape{
          .batch = 1, .queries = 1, .keys = keys, .heads = 3, .head_dim = head_dim};
      const int64_t width = shape.width();
      const auto q = RandomFloats(width, 1, 2.0f), k = RandomFloats(keys * width, 2, 2.0f);
      const auto v = RandomFloats(keys * width, 3);
      const auto qd = ToDouble(q), kd = ToDouble(k), vd = ToDouble(v);
      std::vector<double> expected(width), log_sum_exp(3);
      AttentionForwardRef<double>(shape, {qd.data(), kd.data(), vd.data(), width, width},
                                  DropoutOf(0), expected.data(), log_sum_exp.data());
      std::vector<float> first;
      for (const int threads : {1, 2}) {
        ThreadPool pool(threads);
        std::vector<float> out(width, std::nanf(""));
        AttentionOfOneQuery(pool, {keys, 3, head_dim, q.data(), k.data(), v.data(), out.data()});
        ExpectClose(out, expected, 5e-6, 5e-6);
        if (first.empty()) first = out;
        ExpectSameBits(out, first);
      }
    }
  }
}

TEST(AttentionReference, GradientsAreFiniteDifferences) {
  const std::vector<int32_t> counts = {5, 3};
  const AttentionShape self{.batch = 2, .queries = 5, .keys = 5, .heads = 2, .head_dim = 3};
  AttentionShape causal = self, padded = self, cross = self;
  causal.causal = true;
  padded.key_counts = counts.data();
  cross.queries = 4;
  cross.key_counts = counts.data();
  for (const AttentionShape& shape : {self, causal, padded, cross}) {
    const auto operands = ToDouble(RandomFloats(OperandsSize(shape), 1));
    const auto w = ToDouble(RandomFloats(OutSize(shape), 2));
    for (const float p : {0.0f, 0.4f}) {
      std::vector<double> out(OutSize(shape)), log_sum_exp;
      const auto loss = [&](const std::vector<double>& at) {
        log_sum_exp.resize(shape.stats_size());
        AttentionForwardRef<double>(shape, OperandsIn(shape, at.data()), DropoutOf(p), out.data(),
                                    log_sum_exp.data());
        return Dot(w, out);
      };
      const auto r = RunReference(shape, operands, w, p, log_sum_exp);
      ExpectClose(r.gradient, FiniteDifferences(operands, loss), 1e-8, 1e-8);
    }
  }
}

}  // namespace
}  // namespace tug::kernels
