// Every op on every instruction set that this machine can run: the other tests see the best one
// only.
#include <bit>
#include <vector>

#include "base/thread_pool.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "kernels/adamw.h"
#include "kernels/adamw_ref.h"
#include "kernels/add.h"
#include "kernels/attention.h"
#include "kernels/attention_ref.h"
#include "kernels/bf16.h"
#include "kernels/bf16_ref.h"
#include "kernels/bias.h"
#include "kernels/cross_entropy.h"
#include "kernels/cross_entropy_ref.h"
#include "kernels/dropout.h"
#include "kernels/dropout_ref.h"
#include "kernels/gelu.h"
#include "kernels/gelu_ref.h"
#include "kernels/kernel_test_support.h"
#include "kernels/layernorm.h"
#include "kernels/layernorm_ref.h"
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
  AdamWStep(n, params, g.data(), w.data(), w.data(), m.data(), v.data(), w_bf16.data());
  for (int64_t i = 0; i < n; ++i) {
    AdamWRefFloat(params, constants, g[i], w_ref[i], m_ref[i], v_ref[i]);
    EXPECT_EQ(w_bf16[i], Bf16FromFloatRef(w_ref[i])) << i;
  }
  ExpectSameBits(w, w_ref);
  ExpectSameBits(m, m_ref);
  ExpectSameBits(v, v_ref);
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

TEST_P(InstructionSets, DropoutKeepsTheSameElements) {
  const int64_t n = 1023;
  const DropoutKey key{.seed = 1, .step = 2, .sample = 3, .site = 4};
  const auto x = RandomFloats(2 * n, 1);
  const auto bias = RandomFloats(31, 2);
  std::vector<float> y(2 * n);
  std::vector<double> expected(2 * n);
  BiasDropoutAdd(pool_, 2, n, 31, x.data(), bias.data(), x.data(), 0.3f, key, y.data());
  const auto xd = ToDouble(x);
  DropoutAddRef<double>(2, n, 31, xd.data(), ToDouble(bias).data(), xd.data(), 0.3f, key,
                        expected.data());
  ExpectClose(y, expected, 5e-7, 5e-7);
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
  AttentionForward<T>(pool, shape, operands(qkv.data()), p, key, out.data(), lse.data());
  AttentionBackward<T>(pool, shape, dout.data(), operands(qkv.data()), lse.data(), p, key,
                       operands(dqkv.data()));
  AttentionForwardRef<double>(shape, operands(qkv_d.data()), dropout, out_ref.data(),
                              lse_ref.data());
  AttentionBackwardRef<double>(shape, ToDouble(dout).data(), operands(qkv_d.data()), dropout,
                               operands(dqkv_ref.data()));
  ExpectClose(lse, lse_ref, 2e-6, 1e-6);
  ExpectClose(out, out_ref, 5e-6, 5e-6 + kRounding<T>);
  ExpectClose(dqkv, dqkv_ref, 2e-5, 1e-5 + kRounding<T>);
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
  AttentionOfOneQuery(pool_, kRows, 2, 9, q.data(), k.data(), v.data(), out.data());
  AttentionForwardRef<double>(
      shape, {qd.data(), kd.data(), vd.data(), width, width}, [](int64_t, int64_t) { return 1.0; },
      out_ref.data(), lse_ref.data());
  ExpectClose(out, out_ref, 5e-6, 5e-6);
}

TEST_P(InstructionSets, LayerNormMatchesTheReference) {
  const auto x = RandomFloats(kRows * kWidth, 1), dy = RandomFloats(kRows * kWidth, 2);
  const auto gamma = RandomFloats(kWidth, 3);
  std::vector<float> y(x.size()), mean(kRows), rstd(kRows), dx(x.size()), dg(kWidth), db(kWidth);
  LayerNormForward(pool_, kRows, kWidth, x.data(), gamma.data(), gamma.data(), y.data(),
                   mean.data(), rstd.data());
  LayerNormBackward(pool_, kRows, kWidth, dy.data(), x.data(), gamma.data(), mean.data(),
                    rstd.data(), dx.data(), dg.data(), db.data());
  const auto xd = ToDouble(x), gd = ToDouble(gamma);
  std::vector<double> y_ref(x.size()), mean_ref(kRows), rstd_ref(kRows), dx_ref(x.size());
  std::vector<double> dg_ref(kWidth), db_ref(kWidth);
  LayerNormForwardRef<double>(kRows, kWidth, xd.data(), gd.data(), gd.data(), y_ref.data(),
                              mean_ref.data(), rstd_ref.data());
  LayerNormBackwardRef<double>(kRows, kWidth, ToDouble(dy).data(), xd.data(), gd.data(),
                               mean_ref.data(), rstd_ref.data(), dx_ref.data(), dg_ref.data(),
                               db_ref.data());
  ExpectClose(y, y_ref, 4e-6, 4e-6);
  ExpectClose(dx, dx_ref, 4e-6, 4e-6);
  ExpectClose(dg, dg_ref, 2e-5, 4e-6);
  ExpectClose(db, db_ref, 2e-5, 4e-6);
}

TEST_P(InstructionSets, GeluAndCrossEntropyMatchTheReference) {
  auto pre = RandomFloats(kRows * kWidth, 1, 5.0f);
  std::vector<float> y(pre.size()), dx(pre.size(), 1.0f), losses(kRows);
  BiasGeluForward(pool_, kRows, kWidth, nullptr, pre.data(), y.data());
  GeluBackward(pool_, kRows * kWidth, dx.data(), pre.data(), dx.data());
  std::vector<double> y_ref, dx_ref, losses_ref(kRows);
  for (const double u : pre) {
    y_ref.push_back(GeluRef(u));
    dx_ref.push_back(GeluGradientRef(u));
  }
  ExpectClose(y, y_ref, 1e-6, 1e-6);
  ExpectClose(dx, dx_ref, 2e-6, 2e-6);

  const auto targets = RandomIndices(kRows, 2, kWidth);
  auto logits_ref = ToDouble(pre);
  CrossEntropy(pool_, kRows, kWidth, pre.data(), targets.data(), losses.data());
  CrossEntropyRef<double>(kRows, kWidth, logits_ref.data(), targets.data(), losses_ref.data());
  ExpectClose(losses, losses_ref, 2e-6, 1e-6);
  ExpectClose(pre, logits_ref, 1e-7, 3e-6);
}

TEST_P(InstructionSets, SumsMatchThePlainOnes) {
  const auto x = RandomFloats(kRows * kWidth, 1);
  const auto bias = RandomFloats(kWidth, 2);
  auto rows = x;
  std::vector<float> columns(kWidth), acc(x.size(), 1.0f);
  std::vector<double> columns_ref(kWidth);
  AddBias(pool_, kRows, kWidth, bias.data(), rows.data());
  BiasGradient(pool_, kRows, kWidth, x.data(), columns.data());
  EXPECT_TRUE(AddAndCheck(x.data(), acc.data(), kRows * kWidth));
  std::vector<float> sum(x.size());
  EXPECT_TRUE(SumAndCheck(x.data(), rows.data(), sum.data(), kRows * kWidth));
  EXPECT_TRUE(AllFinite(sum.data(), kRows * kWidth));
  double squares = 0;
  for (int64_t i = 0; i < kRows * kWidth; ++i) {
    EXPECT_EQ(rows[i], x[i] + bias[i % kWidth]);
    EXPECT_EQ(acc[i], 1.0f + x[i]);
    EXPECT_EQ(sum[i], x[i] + rows[i]);
    columns_ref[i % kWidth] += x[i];
    squares += static_cast<double>(x[i]) * x[i];
  }
  ExpectClose(columns, columns_ref, 1e-5, 1e-6);
  EXPECT_NEAR(SumOfSquares(x.data(), kRows * kWidth), squares, 1e-10);
  acc[77] = std::nanf("");
  EXPECT_FALSE(AllFinite(acc.data(), kRows * kWidth));
  EXPECT_FALSE(CopyAndCheck(acc.data(), rows.data(), kRows * kWidth));
}

INSTANTIATE_TEST_SUITE_P(All, InstructionSets,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const testing::TestParamInfo<int64_t>& info) {
                           return hwy::TargetName(info.param);
                         });

}  // namespace
}  // namespace tug::kernels
