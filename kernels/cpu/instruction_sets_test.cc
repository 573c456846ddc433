// SPDX-License-Identifier: Apache-2.0
// Every operation on every instruction set that this machine supports: other tests use only the
// best one.
#include <bit>
#include <vector>

#include "base/cpu/thread_pool.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/bias.h"
#include "kernels/cpu/linear/matmul_primitive.h"
#include "kernels/cpu/linear/store_tile.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/layernorm.h"
#include "kernels/reference/activation_ref.h"
#include "kernels/reference/adamw_ref.h"
#include "kernels/reference/attention_ref.h"
#include "kernels/reference/bf16_ref.h"
#include "kernels/reference/cross_entropy_ref.h"
#include "kernels/reference/dropout_ref.h"
#include "kernels/reference/kernel_test_support.h"
#include "kernels/reference/layernorm_ref.h"
#include "kernels/reference/sgd_ref.h"
#include "kernels/sgd.h"
#include "kernels/sum.h"

namespace tug::kernels {
namespace {

constexpr int64_t kRows = 70;
constexpr int64_t kWidth = 45;

class InstructionSets : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  ThreadPool pool_{2};
};

TEST_P(InstructionSets, AdamWHasTheBitsOfTheFloatReference) {
  const int64_t n = 1023;
  const AdamWParams params{.weight_decay = 0.1f};
  const AdamWConstants constants = MakeAdamWConstants(params);
  const auto g = RandomFloats(n, 1);
  auto w = RandomFloats(n, 2), w_ref = w;
  std::vector<float> m(n), m_ref(n), v(n), v_ref(n);
  std::vector<Bf16> w_bf16(n);
  AdamWStep(params, {n, g.data(), w.data(), w.data(), m.data(), v.data(), w_bf16.data()});
  for (int64_t i = 0; i < n; ++i) {
    AdamWRefFloat(params, constants, g[i], w_ref[i], m_ref[i], v_ref[i]);
    EXPECT_EQ(w_bf16[i], Bf16FromFloatRef(w_ref[i])) << i;
  }
  ExpectSameBits(w, w_ref);
  ExpectSameBits(m, m_ref);
  ExpectSameBits(v, v_ref);
}

TEST_P(InstructionSets, SgdHasTheBitsOfTheFloatReference) {
  const int64_t n = 1023;
  const SgdParams params{.momentum = 0.9f, .nesterov = true, .weight_decay = 0.1f};
  const auto g = RandomFloats(n, 1), w_old = RandomFloats(n, 3);
  auto w = RandomFloats(n, 2), w_ref = w;
  std::vector<float> u(n), u_ref(n), delayed(n);
  std::vector<Bf16> w_bf16(n);
  CompensateDelay(n, 0.3f, 0.5f, g.data(), w.data(), w_old.data(), delayed.data());
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(delayed[i], CompensateDelayRef(0.3f, 0.5f, g[i], w[i], w_old[i])) << i;
  }
  SgdStep(params, {n, g.data(), w.data(), w.data(), u.data(), w_bf16.data()});
  for (int64_t i = 0; i < n; ++i) {
    SgdRef<float>(params, g[i], w_ref[i], u_ref[i]);
    EXPECT_EQ(w_bf16[i], Bf16FromFloatRef(w_ref[i])) << i;
  }
  ExpectSameBits(w, w_ref);
  ExpectSameBits(u, u_ref);
}

TEST_P(InstructionSets, Bf16HasTheBitsOfTheReference) {
  std::vector<float> src;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    src.push_back(std::bit_cast<float>(upper << 16 | 0x8000u));
    src.push_back(std::bit_cast<float>(upper << 16 | upper));
  }
  src.pop_back();
  const auto n = static_cast<int64_t>(src.size());
  std::vector<Bf16> narrow(src.size());
  std::vector<float> wide(src.size()), copy(src.size()), acc(src.size()), expected;
  Bf16FromFloat(src.data(), narrow.data(), n);
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(narrow[i], Bf16FromFloatRef(src[i])) << i;
    expected.push_back(FloatFromBf16Ref(narrow[i]));
  }
  FloatFromBf16(narrow.data(), wide.data(), n);
  EXPECT_FALSE(CopyAndCheckBf16(narrow.data(), copy.data(), n));
  ExpectSameBits(wide, expected);
  ExpectSameBits(copy, expected);
  EXPECT_TRUE(AddAndCheckBf16(narrow.data(), acc.data(), 1023));
  for (int64_t i = 0; i < 1023; ++i) EXPECT_EQ(acc[i], expected[i]);
}

template <typename T>
void ExpectDropoutMatchesTheReference(ThreadPool& pool) {
  const int64_t n = 1023;
  const DropoutKey key{.seed = 1, .step = 2, .sample = 3, .site = 4};
  const auto x = As<T>(RandomFloats(2 * n, 1));
  const auto bias = RandomFloats(31, 2);
  std::vector<T> y(2 * n);
  std::vector<double> expected(2 * n);
  DropoutAdd<T>(pool, {2, n, 31, x.data(), bias.data(), x.data(), 0.3f, key, y.data()});
  const auto xd = ToDouble(x);
  DropoutAddRef<double>(
      {2, n, 31, xd.data(), ToDouble(bias).data(), xd.data(), 0.3f, key, expected.data()});
  ExpectClose(y, expected, 5e-7, 5e-7 + kRounding<T>);
}

TEST_P(InstructionSets, DropoutKeepsTheSameElements) {
  ExpectDropoutMatchesTheReference<float>(pool_);
  ExpectDropoutMatchesTheReference<Bf16>(pool_);
}

template <typename T>
void ExpectAttentionMatchesTheReference(ThreadPool& pool) {
  const std::vector<int32_t> counts = {kRows, 37};
  const AttentionShape shape{.batch = 2,
                             .queries = kRows,
                             .keys = kRows,
                             .heads = 2,
                             .head_dim = 9,
                             .causal = true,
                             .key_counts = counts.data()};
  const DropoutKey key{.seed = 5};
  const float p = 0.2f;
  const AttentionDropoutRef dropout = [&](int64_t sample, int64_t element) {
    return DropoutKeepsRef(key, static_cast<uint32_t>(sample), element, p) ? 1 / (1 - 0.2) : 0.0;
  };
  const int64_t width = shape.width(), size = shape.batch * shape.queries * width;
  const auto operands = [&](auto* qkv) {
    return AttentionOperands<std::remove_pointer_t<decltype(qkv)>>{
        qkv, qkv + width, qkv + 2 * width, 3 * width, 3 * width};
  };
  const auto qkv = As<T>(RandomFloats(3 * size, 1)), dout = As<T>(RandomFloats(size, 2));
  const auto qkv_d = ToDouble(qkv);
  std::vector<T> out(size), dqkv(3 * size);
  std::vector<float> lse(shape.stats_size());
  std::vector<double> out_ref(size), dqkv_ref(3 * size), lse_ref(lse.size());
  AttentionForward<T>(pool, {shape, operands(qkv.data()), p, key, out.data(), lse.data()});
  AttentionBackward<T>(pool, {shape, operands(qkv.data()), p, key, /*out=*/nullptr, lse.data(),
                              dout.data(), operands(dqkv.data())});
  AttentionForwardRef<double>(shape, operands(qkv_d.data()), dropout, out_ref.data(),
                              lse_ref.data());
  AttentionBackwardRef<double>(shape, ToDouble(dout).data(), operands(qkv_d.data()), dropout,
                               operands(dqkv_ref.data()));
  // As in attention_test.cc: error added by rounding factors on a machine with bf16 products.
  const double factors = std::is_same_v<T, Bf16> && HasBf16Products() ? 0x1p-8 : 0.0;
  ExpectClose(lse, lse_ref, 2e-6, 1e-6);
  ExpectClose(out, out_ref, 5e-6 + factors, 5e-6 + kRounding<T>);
  ExpectClose(dqkv, dqkv_ref, 2e-5 + factors, 1e-5 + kRounding<T>);
}

TEST_P(InstructionSets, AttentionMatchesTheReference) {
  ExpectAttentionMatchesTheReference<float>(pool_);
  ExpectAttentionMatchesTheReference<Bf16>(pool_);
}

TEST_P(InstructionSets, AttentionOfOneQueryMatchesTheReference) {
  const AttentionShape shape{.batch = 1, .queries = 1, .keys = kRows, .heads = 2, .head_dim = 9};
  const int64_t width = shape.width();
  const auto q = RandomFloats(width, 1), k = RandomFloats(kRows * width, 2);
  const auto v = RandomFloats(kRows * width, 3);
  const auto qd = ToDouble(q), kd = ToDouble(k), vd = ToDouble(v);
  std::vector<float> out(width);
  std::vector<double> out_ref(width), lse_ref(2);
  AttentionOfOneQuery(pool_, {kRows, 2, 9, q.data(), k.data(), v.data(), out.data()});
  AttentionForwardRef<double>(
      shape, {qd.data(), kd.data(), vd.data(), width, width}, [](int64_t, int64_t) { return 1.0; },
      out_ref.data(), lse_ref.data());
  ExpectClose(out, out_ref, 5e-6, 5e-6);
}

// LayerNorm after a residual sum with zeros, which leaves x unchanged.
template <typename T>
void ExpectLayerNormMatchesTheReference(ThreadPool& pool) {
  const auto x = As<T>(RandomFloats(kRows * kWidth, 1)),
             dy = As<T>(RandomFloats(kRows * kWidth, 2));
  const auto gamma = RandomFloats(kWidth, 3);
  const std::vector<T> none(x.size());
  std::vector<T> sum(x.size()), y(x.size()), dx = dy;
  std::vector<float> mean(kRows), rstd(kRows), dg(kWidth), db(kWidth);
  ResidualLayerNormForward<T>(pool, {.add = {.samples = 1,
                                             .elements_per_sample = kRows * kWidth,
                                             .width = kWidth,
                                             .x = none.data(),
                                             .residual = x.data(),
                                             .y = sum.data()},
                                     .gamma = gamma.data(),
                                     .beta = gamma.data(),
                                     .y = y.data(),
                                     .mean = mean.data(),
                                     .rstd = rstd.data()});
  EXPECT_EQ(ToDouble(sum), ToDouble(x));
  LayerNormBackward<T>(pool, {kRows, kWidth, dy.data(), x.data(), gamma.data(), mean.data(),
                              rstd.data(), /*accumulate=*/true, dx.data(), dg.data(), db.data()});
  const auto xd = ToDouble(x), gd = ToDouble(gamma);
  std::vector<double> y_ref(x.size()), mean_ref(kRows), rstd_ref(kRows), dx_ref = ToDouble(dy);
  std::vector<double> dg_ref(kWidth), db_ref(kWidth);
  LayerNormForwardRef<double>({kRows, kWidth, xd.data(), gd.data(), gd.data(), y_ref.data(),
                               mean_ref.data(), rstd_ref.data()});
  LayerNormBackwardRef<double>({kRows, kWidth, ToDouble(dy).data(), xd.data(), gd.data(),
                                mean_ref.data(), rstd_ref.data(), /*accumulate=*/true,
                                dx_ref.data(), dg_ref.data(), db_ref.data()});
  ExpectClose(y, y_ref, 4e-6, 4e-6 + kRounding<T>);
  ExpectClose(dx, dx_ref, 4e-6, 4e-6 + kRounding<T>);
  ExpectClose(dg, dg_ref, 2e-5, 4e-6);
  ExpectClose(db, db_ref, 2e-5, 4e-6);
}

TEST_P(InstructionSets, LayerNormMatchesTheReference) {
  ExpectLayerNormMatchesTheReference<float>(pool_);
  ExpectLayerNormMatchesTheReference<Bf16>(pool_);
}

template <typename T>
void ExpectActivationsMatchTheReference(ThreadPool& pool) {
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    auto pre = As<T>(RandomFloats(kRows * kWidth, 1, 5.0f));
    std::vector<T> y(pre.size()), dx = As<T>(std::vector<float>(pre.size(), 1.0f));
    BiasActivationForward(pool, activation, kRows, kWidth, nullptr, pre.data(), y.data());
    ActivationBackward(pool, activation, kRows * kWidth, dx.data(), pre.data(), dx.data());
    std::vector<double> y_ref, dx_ref;
    for (const T u : pre) {
      y_ref.push_back(ActivationRef(activation, ToDouble(u)));
      dx_ref.push_back(ActivationGradientRef(activation, ToDouble(u)));
    }
    ExpectClose(y, y_ref, 1e-6, 1e-6 + kRounding<T>);
    ExpectClose(dx, dx_ref, 2e-6, 2e-6 + kRounding<T>);
  }
}

TEST_P(InstructionSets, ActivationsMatchTheReference) {
  ExpectActivationsMatchTheReference<float>(pool_);
  ExpectActivationsMatchTheReference<Bf16>(pool_);
}

template <typename T>
void ExpectCrossEntropyMatchesTheReference(ThreadPool& pool) {
  constexpr int64_t kVocab = 4111;  // more than one chunk
  const Objective objective{.label_smoothing = 0.1f, .z_loss = 1e-3f};
  const auto logits = RandomFloats(kRows * kVocab, 1, 5.0f);
  auto targets = RandomIndices(kRows, 2, kVocab);
  targets[3] = kNoTarget;
  for (int64_t j = 0; j < kVocab; ++j) {
    if (logits[j] > logits[targets[0]]) targets[0] = static_cast<int32_t>(j);  // row 0 is correct
  }
  std::vector<T> gradient(logits.size());
  std::vector<float> losses(kRows);
  std::vector<uint8_t> correct(kRows), correct_ref(kRows);
  std::vector<double> gradient_ref(logits.size()), losses_ref(kRows), objectives(kRows);
  CrossEntropy<T>(pool, {kRows, kVocab, kVocab, logits.data(), targets.data(), objective,
                         gradient.data(), losses.data(), correct.data()});
  CrossEntropyRef<double>({kRows, kVocab, kVocab, ToDouble(logits).data(), targets.data(),
                           objective, gradient_ref.data(), losses_ref.data(), correct_ref.data()},
                          objectives.data());
  ExpectClose(losses, losses_ref, 2e-6, 1e-6);
  ExpectClose(gradient, gradient_ref, 1e-7, 3e-6 + kRounding<T>);
  EXPECT_EQ(correct, correct_ref);
}

TEST_P(InstructionSets, CrossEntropyMatchesTheReference) {
  ExpectCrossEntropyMatchesTheReference<float>(pool_);
  ExpectCrossEntropyMatchesTheReference<Bf16>(pool_);
}

// With bf16 weights the result is one sum and its rounding, so it is bit-identical.
TEST_P(InstructionSets, EmbeddingHasTheBitsOfPlainSums) {
  const auto wte = As<Bf16>(RandomFloats(7 * kWidth, 1));
  const auto wpe = As<Bf16>(RandomFloats(kRows * kWidth, 2));
  const auto tokens = RandomIndices(kRows, 3, 7);
  std::vector<Bf16> out(kRows * kWidth);
  std::vector<float> dwte(7 * kWidth), dwte_ref(7 * kWidth), dwpe(kRows * kWidth);
  EmbeddingForward<Bf16, Bf16>(
      pool_, {1, kRows, kWidth, tokens.data(), wte.data(), wpe.data(), out.data()});
  EmbeddingBackward<Bf16>(pool_,
                          {1, kRows, kWidth, tokens.data(), out.data(), dwte.data(), dwpe.data()});
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < kWidth; ++i) {
      const int64_t token = tokens[row] * kWidth + i, at = row * kWidth + i;
      const float sum = FloatFromBf16Ref(wte[token]) + FloatFromBf16Ref(wpe[at]);
      ASSERT_EQ(out[at], Bf16FromFloatRef(sum)) << row << ", " << i;
      ASSERT_EQ(dwpe[at], FloatFromBf16Ref(out[at])) << row << ", " << i;
      dwte_ref[token] += FloatFromBf16Ref(out[at]);
    }
  }
  ExpectSameBits(dwte, dwte_ref);
}

TEST_P(InstructionSets, SumsMatchThePlainOnes) {
  const auto x = RandomFloats(kRows * kWidth, 1);
  auto rows = RandomFloats(kRows * kWidth, 2);
  std::vector<float> columns(kWidth), acc(x.size(), 1.0f);
  std::vector<double> columns_ref(kWidth);
  BiasGradient(pool_, kRows, kWidth, x.data(), columns.data());
  EXPECT_TRUE(AddAndCheck(x.data(), acc.data(), kRows * kWidth));
  std::vector<float> sum(x.size());
  EXPECT_TRUE(SumAndCheck(x.data(), rows.data(), sum.data(), kRows * kWidth));
  EXPECT_TRUE(AllFinite(sum.data(), kRows * kWidth));
  double squares = 0;
  for (int64_t i = 0; i < kRows * kWidth; ++i) {
    EXPECT_EQ(acc[i], 1.0f + x[i]);
    EXPECT_EQ(sum[i], x[i] + rows[i]);
    columns_ref[i % kWidth] += x[i];
    squares += static_cast<double>(x[i]) * x[i];
  }
  ExpectClose(columns, columns_ref, 1e-5, 1e-6);
  const auto narrow = As<Bf16>(x);
  std::vector<float> narrow_columns(kWidth);
  std::vector<double> narrow_columns_ref(kWidth);
  BiasGradient(pool_, kRows, kWidth, narrow.data(), narrow_columns.data());
  for (int64_t i = 0; i < kRows * kWidth; ++i) {
    narrow_columns_ref[i % kWidth] += static_cast<double>(FloatFromBf16Ref(narrow[i]));
  }
  ExpectClose(narrow_columns, narrow_columns_ref, 1e-5, 1e-6);
  EXPECT_NEAR(SumOfSquares(x.data(), kRows * kWidth), squares, 1e-10);
  acc[77] = std::nanf("");
  EXPECT_FALSE(AllFinite(acc.data(), kRows * kWidth));
  EXPECT_FALSE(CopyAndCheck(acc.data(), rows.data(), kRows * kWidth));
}

template <typename C>
void ExpectStoresTiles() {
  const int64_t columns = 37, stride = 45, rows = 3;
  const auto sums = RandomFloats(rows * columns, 1), bias = RandomFloats(columns, 2);
  const auto before = As<C>(RandomFloats(rows * stride, 3));
  for (const bool with_bias : {false, true}) {
    for (const bool accumulate : {false, true}) {
      auto c = before;
      StoreTile(rows, columns, sums.data(), with_bias ? bias.data() : nullptr, accumulate, c.data(),
                stride);
      for (int64_t i = 0; i < rows * stride; ++i) {
        const int64_t row = i / stride, column = i % stride;
        double expected = ToDouble(before[i]);
        if (column < columns) {
          float sum = sums[row * columns + column] + (with_bias ? bias[column] : 0.0f);
          if (accumulate) sum += static_cast<float>(expected);
          expected = ToDouble(As<C>({sum})[0]);
        }
        EXPECT_EQ(ToDouble(c[i]), expected) << "row " << row << " column " << column;
      }
    }
  }
}

TEST_P(InstructionSets, StoreTileAddsAndRoundsOnce) {
  ExpectStoresTiles<float>();
  ExpectStoresTiles<Bf16>();
}

INSTANTIATE_TEST_SUITE_P(All, InstructionSets,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const testing::TestParamInfo<int64_t>& info) {
                           return hwy::TargetName(info.param);
                         });

}  // namespace
}  // namespace tug::kernels
