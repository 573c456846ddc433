// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_cuda.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/attention_ref.h"
#include "kernels/reference/attention_test_support.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels::cuda {
namespace {

// Error that rounding to bf16 may add to each number, in units of u = 2^-8 and without rounding the
// number itself: the sums a, sum w |dout|, s sum (|dS| + P e) |k|, ... of
// kernels/cuda/attention/attention_cuda.h.
struct RoundingSums {
  std::vector<double> out, gradient;
};

RoundingSums RoundingSumsRef(const AttentionShape& s, std::vector<double> operands,
                             const std::vector<double>& dout, const std::vector<double>& out,
                             float p) {
  RoundingSums r{std::vector<double>(OutSize(s)), std::vector<double>(OperandsSize(s))};
  const auto in = OperandsIn<const double>(s, operands.data());
  const auto to = OperandsIn(s, r.gradient.data());
  const AttentionDropoutRef dropout = DropoutOf(p);
  const double scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
  const int64_t dim = s.head_dim;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < s.queries; ++i) {
        double lse = 0, dot = 0, e = 0;
        const auto prob = AttentionProbabilitiesRef(s, in, b, h, i, lse);
        const int64_t q_at = (b * s.queries + i) * in.q_stride + h * dim;
        const int64_t out_at = (b * s.queries + i) * s.width() + h * dim;
        std::vector<double> dp(prob.size());
        for (size_t j = 0; j < prob.size(); ++j) {
          const int64_t kv_at = (b * s.keys + static_cast<int64_t>(j)) * in.kv_stride + h * dim;
          const double factor = dropout(b, AttentionElementRef(s, h, i, static_cast<int64_t>(j)));
          for (int64_t d = 0; d < dim; ++d) {
            dp[j] += factor * dout[out_at + d] * in.v[kv_at + d];
            r.out[out_at + d] += factor * prob[j] * std::abs(in.v[kv_at + d]);
            to.v[kv_at + d] += factor * prob[j] * std::abs(dout[out_at + d]);
          }
          dot += dp[j] * prob[j];
        }
        for (int64_t d = out_at; d < out_at + dim; ++d) {
          e += std::abs(dout[d]) * (std::abs(out[d]) + r.out[d]);
        }
        for (size_t j = 0; j < prob.size(); ++j) {
          const int64_t kv_at = (b * s.keys + static_cast<int64_t>(j)) * in.kv_stride + h * dim;
          const double weight = scale * prob[j] * (std::abs(dp[j] - dot) + e);
          for (int64_t d = 0; d < dim; ++d) {
            to.q[q_at + d] += weight * std::abs(in.k[kv_at + d]);
            to.k[kv_at + d] += weight * std::abs(in.q[q_at + d]);
          }
        }
      }
    }
  }
  return r;
}

// Expects errors within u times (the number and its sum), plus a tenth of that.
void ExpectWithinRounding(const std::vector<Bf16>& actual, const std::vector<double>& expected,
                          const std::vector<double>& sums) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const double bound = 1.1 * 0x1p-8 * (std::abs(expected[i]) + sums[i]) + 1e-6;
    ASSERT_TRUE(std::abs(ToDouble(actual[i]) - expected[i]) <= bound)
        << "element " << i << " of " << actual.size() << ": " << ToDouble(actual[i])
        << ", expected " << expected[i] << " within " << bound;
  }
}

template <typename T>
class AttentionCuda : public CudaTest {
 protected:
  AttentionResult<T> RunKernel(const AttentionShape& host_shape, const std::vector<T>& operands,
                               const std::vector<T>& dout, float p, const DropoutKey& key = kKey,
                               const AttentionBackwardLimits& limits = {}) {
    AttentionShape shape = host_shape;
    std::optional<OnDevice<int32_t>> counts;
    if (shape.key_counts != nullptr) {
      counts.emplace(std::vector<int32_t>(shape.key_counts, shape.key_counts + shape.batch),
                     this->stream());
      shape.key_counts = counts->data();
    }
    const T nan = As<T>({std::nanf("")})[0];  // every output must be overwritten
    const OnDevice in(operands, this->stream()), d_o(dout, this->stream());
    const OnDevice out(std::vector<T>(OutSize(shape), nan), this->stream());
    const OnDevice gradient(std::vector<T>(OperandsSize(shape), nan), this->stream());
    const OnDevice log_sum_exp(std::vector<float>(shape.stats_size(), std::nanf("")),
                               this->stream());
    const auto views = OperandsIn<const T>(shape, in.data());
    absl::Status status =
        AttentionForward<T>({shape, views, p, key, out.data(), log_sum_exp.data()}, this->stream());
    EXPECT_TRUE(status.ok()) << status;
    status = AttentionBackward<T>({shape, views, p, key, out.data(), log_sum_exp.data(), d_o.data(),
                                   OperandsIn(shape, gradient.data())},
                                  this->stream(), limits);
    EXPECT_TRUE(status.ok()) << status;
    return {out.Read(), gradient.Read(), log_sum_exp.Read()};
  }

  void ExpectMatchesReference(const AttentionShape& shape, float p,
                              const AttentionBackwardLimits& limits = {}) {
    SCOPED_TRACE(testing::Message() << shape.batch << " x " << shape.queries << ", " << shape.keys
                                    << " x " << shape.heads << " x " << shape.head_dim << " causal "
                                    << shape.causal << " p " << p);
    const auto operands = RandomOperands<T>(shape);
    const auto dout = RandomGradient<T>(shape);
    const AttentionResult<T> actual = RunKernel(shape, operands, dout, p, kKey, limits);
    std::vector<double> log_sum_exp;
    const AttentionResult<double> expected =
        RunReference(shape, ToDouble(operands), ToDouble(dout), p, log_sum_exp);
    if constexpr (std::is_same_v<T, float>) {
      ExpectClose(actual.log_sum_exp, log_sum_exp, 2e-6, 1e-6);
      ExpectClose(actual.out, expected.out, 5e-6, 5e-6);
      ExpectClose(actual.gradient, expected.gradient, 2e-5, 1e-5);
    } else {
      ExpectClose(actual.log_sum_exp, log_sum_exp, 1e-4, 0);
      const RoundingSums sums =
          RoundingSumsRef(shape, ToDouble(operands), ToDouble(dout), expected.out, p);
      ExpectWithinRounding(actual.out, expected.out, sums.out);
      ExpectWithinRounding(actual.gradient, expected.gradient, sums.gradient);
    }
  }

  void ExpectSameResult(const AttentionResult<T>& a, const AttentionResult<T>& b) {
    ExpectSameBits(a.out, b.out);
    ExpectSameBits(a.gradient, b.gradient);
    ExpectSameBits(a.log_sum_exp, b.log_sum_exp);
  }
};

using ElementTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(AttentionCuda, ElementTypes);

// For Bf16, tensor cores support multiples of 8: in tiles of 32, 64 and 128 columns.
constexpr int64_t kHeadDims[] = {8, 32, 64, 80, 128};

TYPED_TEST(AttentionCuda, MatchesTheReferenceAtEverySize) {
  for (const int64_t head_dim : kHeadDims) {
    for (const bool causal : {true, false}) {
      for (const int64_t seq : {0, 1, 31, 32, 33, 64, 65, 130}) {
        this->ExpectMatchesReference({.batch = seq < 64 ? 2 : 1,
                                      .queries = seq,
                                      .keys = seq,
                                      .heads = 2,
                                      .head_dim = head_dim,
                                      .causal = causal},
                                     0);
      }
    }
  }
  for (const int64_t head_dim : {1, 31, 33, 40, 96, 112, 120}) {
    this->ExpectMatchesReference(
        {.batch = 1, .queries = 70, .keys = 70, .heads = 2, .head_dim = head_dim, .causal = true},
        0);
  }
  this->ExpectMatchesReference(
      {.batch = 0, .queries = 20, .keys = 20, .heads = 2, .head_dim = 8, .causal = true}, 0);
}

TYPED_TEST(AttentionCuda, DropsWhatTheReferenceDrops) {
  for (const int64_t head_dim : kHeadDims) {
    for (const bool causal : {true, false}) {
      for (const int64_t seq : {31, 130}) {
        this->ExpectMatchesReference({.batch = seq < 64 ? 2 : 1,
                                      .queries = seq,
                                      .keys = seq,
                                      .heads = 2,
                                      .head_dim = head_dim,
                                      .causal = causal},
                                     0.2f);
      }
    }
  }
}

TYPED_TEST(AttentionCuda, LongContextMatchesTheReference) {
  this->ExpectMatchesReference(
      {.batch = 1, .queries = 1024, .keys = 1024, .heads = 1, .head_dim = 64, .causal = true}, 0);
  this->ExpectMatchesReference(
      {.batch = 1, .queries = 1023, .keys = 1023, .heads = 1, .head_dim = 32, .causal = true},
      0.1f);
}

TYPED_TEST(AttentionCuda, CrossAttentionMatchesTheReference) {
  for (const int64_t head_dim : {9, 48, 64, 128}) {
    for (const float p : {0.0f, 0.2f}) {
      for (const int64_t queries : {0, 1, 130}) {
        for (const int64_t keys : {1, 200}) {
          this->ExpectMatchesReference(
              {.batch = 1, .queries = queries, .keys = keys, .heads = 2, .head_dim = head_dim}, p);
        }
      }
    }
  }
}

TYPED_TEST(AttentionCuda, PaddedKeysAreNotReachedAndTheirGradientsAreZero) {
  const std::vector<int32_t> counts = {1, 31, 64, 65, 150};
  for (const int64_t head_dim : {8, 64, 128}) {
    for (const int64_t queries : {150, 40}) {
      const AttentionShape shape{.batch = 5,
                                 .queries = queries,
                                 .keys = 150,
                                 .heads = 1,
                                 .head_dim = head_dim,
                                 .causal = queries == 150,
                                 .key_counts = counts.data()};
      this->ExpectMatchesReference(shape, 0.2f);
      auto operands = RandomOperands<TypeParam>(shape);
      const auto dout = RandomGradient<TypeParam>(shape);
      auto before = this->RunKernel(shape, operands, dout, 0);
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
      this->ExpectSameResult(this->RunKernel(shape, operands, dout, 0), before);
    }
  }
}

// Shapes whose keys need several tiles of the backward pass, in several blocks.
std::vector<AttentionShape> ShapesOfSeveralTiles(const std::vector<int32_t>& counts) {
  std::vector<AttentionShape> shapes;
  for (const int64_t head_dim : {16, 64, 128}) {
    shapes.push_back({.batch = 1,
                      .queries = 300,
                      .keys = 300,
                      .heads = 2,
                      .head_dim = head_dim,
                      .causal = true});
    shapes.push_back({.batch = static_cast<int64_t>(counts.size()),
                      .queries = 40,
                      .keys = 600,
                      .heads = 1,
                      .head_dim = head_dim,
                      .key_counts = counts.data()});
  }
  return shapes;
}

// Only the tensor-core path can be divided in different ways.
using AttentionBf16Cuda = AttentionCuda<Bf16>;

TEST_F(AttentionBf16Cuda, BackwardHasTheSameBitsHoweverItIsCut) {
  const std::vector<int32_t> counts = {600, 256, 1};
  for (const AttentionShape& shape : ShapesOfSeveralTiles(counts)) {
    const float p = shape.causal ? 0.0f : 0.2f;
    ExpectMatchesReference(shape, p);
    const auto operands = RandomOperands<Bf16>(shape);
    const auto dout = RandomGradient<Bf16>(shape);
    const auto run = [&](const AttentionBackwardLimits& limits) {
      return RunKernel(shape, operands, dout, p, kKey, limits);
    };
    const auto expected = run({});
    EXPECT_EQ(PlanAttentionBackward(shape).tiles_of_block, 1);
    ExpectSameResult(run({.blocks_to_fill = 0}), expected);
    EXPECT_EQ(PlanAttentionBackward(shape, {.blocks_to_fill = 0}).tiles_of_block, 2);
    ExpectSameResult(run({.sum_bytes = 0}), expected);
    EXPECT_EQ(PlanAttentionBackward(shape, {.sum_bytes = 0}).heads_at_once, 1);
  }
}

TEST_F(AttentionBf16Cuda, BackwardInTwoPassesMatchesTheReference) {
  const std::vector<int32_t> counts = {600, 1};
  for (const AttentionShape& shape : ShapesOfSeveralTiles(counts)) {
    ExpectMatchesReference(shape, shape.causal ? 0.2f : 0.0f, {.key_tiles = 0});
  }
  ExpectMatchesReference({.batch = 1, .queries = 0, .keys = 30, .heads = 1, .head_dim = 8}, 0,
                         {.key_tiles = 0});
}

TEST(AttentionBackwardPlan, HoldsTheSumsOfReachedQueriesWithinItsLimit) {
  // 1,024 keys are 8 tiles: 4 blocks of two, whose keys are reached by 16, 12, 8 and 4 tiles of
  // queries.
  AttentionShape shape = {
      .batch = 16, .queries = 1024, .keys = 1024, .heads = 12, .head_dim = 64, .causal = true};
  AttentionBackwardPlan plan = PlanAttentionBackward(shape);
  EXPECT_TRUE(plan.one_pass);
  EXPECT_EQ(plan.tiles_of_block, 2);
  EXPECT_EQ(plan.blocks_of_head, 4);
  EXPECT_EQ(plan.sum_tiles_of_head, 40);
  EXPECT_EQ(plan.heads_at_once, 192);
  EXPECT_EQ(plan.scratch_bytes, 192 * 40 * 64 * 64 * 4);
  shape.causal = false;
  EXPECT_EQ(PlanAttentionBackward(shape).sum_tiles_of_head, 64);
  shape.batch = 1;  // 48 blocks of two
  EXPECT_EQ(PlanAttentionBackward(shape).tiles_of_block, 1);
  shape.batch = 256;
  plan = PlanAttentionBackward(shape);
  EXPECT_EQ(plan.heads_at_once, 512);
  EXPECT_EQ(plan.scratch_bytes, int64_t{512} << 20);
  shape.queries = shape.keys = 64 * kBackwardKeyTile;
  EXPECT_TRUE(PlanAttentionBackward(shape).one_pass);
  ++shape.keys;
  EXPECT_FALSE(PlanAttentionBackward(shape).one_pass);
  EXPECT_EQ(PlanAttentionBackward(shape).scratch_bytes, 0);
}

TYPED_TEST(AttentionCuda, LargeScoresDoNotOverflow) {
  for (const int64_t head_dim : {8, 64}) {
    const AttentionShape shape{
        .batch = 1, .queries = 130, .keys = 130, .heads = 1, .head_dim = head_dim, .causal = true};
    // With scores of order 10^4, a row's largest has all the weight.
    const auto operands = As<TypeParam>(RandomFloats(OperandsSize(shape), 1, 200.0f));
    const auto result = this->RunKernel(shape, operands, RandomGradient<TypeParam>(shape), 0);
    for (const auto& numbers : {result.out, result.gradient}) {
      for (const TypeParam x : numbers) ASSERT_TRUE(std::isfinite(ToDouble(x)));
    }
    const auto last = OperandsIn(shape, operands.data());
    std::vector<TypeParam> first_out(result.out.begin(), result.out.begin() + head_dim);
    ExpectSameBits(first_out, std::vector<TypeParam>(last.v, last.v + head_dim));
  }
}

TYPED_TEST(AttentionCuda, AnOutputDoesNotDependOnLaterPositions) {
  for (const int64_t head_dim : {16, 64}) {
    const AttentionShape shape{
        .batch = 1, .queries = 200, .keys = 200, .heads = 2, .head_dim = head_dim, .causal = true};
    auto operands = RandomOperands<TypeParam>(shape);
    const auto dout = RandomGradient<TypeParam>(shape);
    auto before = this->RunKernel(shape, operands, dout, 0).out;
    const auto other = As<TypeParam>(RandomFloats(OperandsSize(shape), 7));
    for (int64_t i = 70 * 3 * shape.width(); i < OperandsSize(shape); ++i) operands[i] = other[i];
    auto after = this->RunKernel(shape, operands, dout, 0).out;
    before.resize(70 * shape.width());
    after.resize(70 * shape.width());
    ExpectSameBits(after, before);
  }
}

TYPED_TEST(AttentionCuda, ASamplesBitsDependOnThatSampleAloneAndRepeat) {
  const std::vector<int32_t> counts = {70, 33, 64};
  for (const int64_t head_dim : {16, 64}) {
    AttentionShape shape{.batch = 3,
                         .queries = 70,
                         .keys = 70,
                         .heads = 2,
                         .head_dim = head_dim,
                         .key_counts = counts.data()};
    const auto operands = RandomOperands<TypeParam>(shape);
    const auto dout = RandomGradient<TypeParam>(shape);
    const auto all = this->RunKernel(shape, operands, dout, 0.2f);
    this->ExpectSameResult(this->RunKernel(shape, operands, dout, 0.2f), all);
    const auto part = [](const std::vector<TypeParam>& of, uint32_t s) {
      const auto size = static_cast<ptrdiff_t>(of.size() / 3);
      return std::vector<TypeParam>(of.begin() + s * size, of.begin() + (s + 1) * size);
    };
    shape.batch = 1;
    for (uint32_t s = 0; s < 3; ++s) {
      DropoutKey key = kKey;
      key.sample += s;
      shape.key_counts = &counts[s];
      const auto one = this->RunKernel(shape, part(operands, s), part(dout, s), 0.2f, key);
      ExpectSameBits(one.out, part(all.out, s));
      ExpectSameBits(one.gradient, part(all.gradient, s));
    }
  }
}

// For Bf16, tensor cores do not support these.
TYPED_TEST(AttentionCuda, TakesMatricesAtAnyBoundary) {
  const AttentionShape shape{.batch = 1, .queries = 70, .keys = 70, .heads = 1, .head_dim = 64};
  const auto operands = RandomOperands<TypeParam>(shape);
  auto moved = operands;
  moved.insert(moved.begin(), TypeParam{});
  const OnDevice in(moved, this->stream());
  const OnDevice out(std::vector<TypeParam>(OutSize(shape)), this->stream());
  const OnDevice log_sum_exp(std::vector<float>(shape.stats_size()), this->stream());
  const absl::Status status =
      AttentionForward<TypeParam>({shape, OperandsIn<const TypeParam>(shape, in.data() + 1), 0,
                                   kKey, out.data(), log_sum_exp.data()},
                                  this->stream());
  ASSERT_TRUE(status.ok()) << status;
  std::vector<double> lse;
  const auto expected =
      RunReference(shape, ToDouble(operands), ToDouble(RandomGradient<TypeParam>(shape)), 0, lse);
  ExpectClose(out.Read(), expected.out, 5e-6, 5e-6 + kRounding<TypeParam>);
  ExpectClose(log_sum_exp.Read(), lse, 2e-6, 1e-6);
}

TYPED_TEST(AttentionCuda, RefusesWhatTheContractRulesOut) {
  const auto code = [&](const AttentionShape& shape, float p) {
    return AttentionForward<TypeParam>({.shape = shape, .p = p}, this->stream()).code();
  };
  EXPECT_EQ(code({.batch = 1, .queries = 4, .keys = 4, .heads = 1, .head_dim = 129}, 0),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      code({.batch = 1, .queries = 4, .keys = 5, .heads = 1, .head_dim = 8, .causal = true}, 0),
      absl::StatusCode::kInvalidArgument);
  // More elements than dropout can number; without dropout they are not numbered.
  const AttentionShape large = {
      .batch = 0, .queries = 1 << 18, .keys = 1 << 17, .heads = 1, .head_dim = 8};
  EXPECT_EQ(code(large, 0.1f), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(large, 0), absl::StatusCode::kOk);
  EXPECT_EQ(code({.batch = 1, .queries = 4, .keys = 4, .heads = 1, .head_dim = 8}, 1),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.batch = 0, .queries = 4, .keys = 4, .heads = 1, .head_dim = 8}, 0),
            absl::StatusCode::kOk);
}

}  // namespace
}  // namespace tug::kernels::cuda
