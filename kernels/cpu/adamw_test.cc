// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw.h"

#include <cmath>

#include "gtest/gtest.h"
#include "kernels/reference/adamw_ref.h"
#include "kernels/reference/bf16_ref.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels {
namespace {

constexpr AdamWParams kParams{.lr = 3e-3f,
                              .beta1 = 0.9f,
                              .beta2 = 0.95f,
                              .eps = 1e-8f,
                              .weight_decay = 0.1f,
                              .t = 1,
                              .gradient_scale = 0.25f};

struct State {
  explicit State(int64_t n) : w(RandomFloats(n, 1)), m(n, 0.0f), v(n, 0.0f) {}
  void Step(const AdamWParams& params, const std::vector<float>& g) {
    AdamWStep(params,
              {static_cast<int64_t>(w.size()), g.data(), w.data(), w.data(), m.data(), v.data()});
  }
  std::vector<float> w, m, v;
};

TEST(AdamW, MatchesThePaperOverManyStepsAtEverySize) {
  for (const int64_t n : {0, 1, 31, 32, 33, 1023, 5000}) {
    SCOPED_TRACE(n);
    State state(n);
    std::vector<AdamWRefState> expected;
    for (const float w : state.w) expected.push_back({w, 0, 0});
    AdamWParams params = kParams;
    for (params.t = 1; params.t <= 20; ++params.t) {
      const auto g = RandomFloats(n, 100 + static_cast<uint32_t>(params.t));
      state.Step(params, g);
      for (int64_t i = 0; i < n; ++i) AdamWRef(params, g[i], expected[i]);
    }
    std::vector<double> w, m, v;
    for (const AdamWRefState& e : expected) {
      w.push_back(e.theta);
      m.push_back(e.m);
      v.push_back(e.v);
    }
    ExpectClose(state.w, w, 2e-6, 2e-6);
    ExpectClose(state.m, m, 1e-7, 1e-6);
    ExpectClose(state.v, v, 1e-9, 2e-6);
  }
}

TEST(AdamW, HasTheBitsOfTheFloatReferenceAtEverySizeAndOffset) {
  for (const int64_t n : kTestSizes) {
    State state(n);
    State expected(n);
    AdamWParams params = kParams;
    for (params.t = 1; params.t <= 3; ++params.t) {
      const auto g = RandomFloats(n, 100 + static_cast<uint32_t>(params.t));
      const AdamWConstants constants = MakeAdamWConstants(params);
      for (int64_t i = 0; i < n; ++i) {
        AdamWRefFloat(params, constants, g[i], expected.w[i], expected.m[i], expected.v[i]);
      }
      // In two parts, since an element's bits do not depend on its position.
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, n / 3}, {n / 3, n}}) {
        AdamWStep(params, {end - begin, g.data() + begin, state.w.data() + begin,
                           state.w.data() + begin, state.m.data() + begin, state.v.data() + begin});
      }
    }
    ExpectSameBits(state.w, expected.w);
    ExpectSameBits(state.m, expected.m);
    ExpectSameBits(state.v, expected.v);
  }
}

TEST(AdamW, WritesToAnotherBufferWhatItWritesInPlaceAtEverySizeAndOffset) {
  for (const int64_t n : kTestSizes) {
    for (int64_t offset = 0; offset < 17; ++offset) {
      SCOPED_TRACE(testing::Message() << n << " at " << offset);
      const auto g = RandomFloats(n, 5);
      State in_place(n);
      State apart(n);
      const auto before = apart.w;
      std::vector<float> w_out(n + offset + 1, 7.0f);
      std::vector<Bf16> in_place_bf16(n), apart_bf16(n);
      AdamWStep(kParams, {n, g.data(), in_place.w.data(), in_place.w.data(), in_place.m.data(),
                          in_place.v.data(), in_place_bf16.data()});
      AdamWStep(kParams, {n, g.data(), apart.w.data(), w_out.data() + offset, apart.m.data(),
                          apart.v.data(), offset % 2 == 0 ? apart_bf16.data() : nullptr});
      EXPECT_EQ(w_out[n + offset], 7.0f) << "wrote beyond the end";
      ExpectSameBits({w_out.begin() + offset, w_out.end() - 1}, in_place.w);
      ExpectSameBits(apart.w, before);
      ExpectSameBits(apart.m, in_place.m);
      ExpectSameBits(apart.v, in_place.v);
      if (offset % 2 == 0) {
        EXPECT_EQ(apart_bf16, in_place_bf16);
      }
    }
  }
}

TEST(AdamW, WritesTheBf16CopyOfTheNewWeightsAtEverySizeAndOffset) {
  for (const int64_t n : kTestSizes) {
    for (const int64_t offset : {0, 1, 3}) {
      SCOPED_TRACE(testing::Message() << n << " at " << offset);
      const auto g = RandomFloats(n, 5);
      State without(n);
      State with(n);
      std::vector<Bf16> copy(n + offset + 2, Bf16{7});
      without.Step(kParams, g);
      AdamWStep(kParams, {n, g.data(), with.w.data(), with.w.data(), with.m.data(), with.v.data(),
                          copy.data() + 1 + offset});
      EXPECT_EQ(copy[offset], Bf16{7}) << "wrote before the start";
      EXPECT_EQ(copy[n + 1 + offset], Bf16{7}) << "wrote beyond the end";
      ExpectSameBits(with.w, without.w);
      ExpectSameBits(with.m, without.m);
      ExpectSameBits(with.v, without.v);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(copy[i + 1 + offset], Bf16FromFloatRef(with.w[i])) << i;
      }
    }
  }
}

TEST(AdamW, LeavesAFrozenVAsItIsAndGoesOnWithItsBiasCorrection) {
  for (const int64_t n : kTestSizes) {
    State state(n);
    State never(n);
    State expected(n);
    AdamWParams params = kParams;
    std::vector<float> v_before;
    for (params.t = 1; params.t <= 6; ++params.t) {
      auto g = RandomFloats(n, 100 + static_cast<uint32_t>(params.t));
      if (n > 0 && params.t == 5) g.back() = 1e30f;  // its square overflows float
      params.freeze_v_after = 0;
      if (params.t <= 3) {
        never.Step(params, g);
      }
      params.freeze_v_after = 3;
      if (params.t == 4) v_before = state.v;
      state.Step(params, g);
      const AdamWConstants constants = MakeAdamWConstants(params);
      EXPECT_EQ(constants.v_stays, params.t > 3);
      for (int64_t i = 0; i < n; ++i) {
        AdamWRefFloat(params, constants, g[i], expected.w[i], expected.m[i], expected.v[i]);
      }
      if (params.t == 3) {
        ExpectSameBits(state.w, never.w);
        ExpectSameBits(state.v, never.v);
      }
    }
    ExpectSameBits(state.v, v_before);
    ExpectSameBits(state.w, expected.w);
    ExpectSameBits(state.m, expected.m);
    for (const float w : state.w) ASSERT_TRUE(std::isfinite(w));
  }
}

TEST(AdamW, MatchesThePaperWithAFrozenV) {
  const int64_t n = 1023;
  State state(n);
  std::vector<AdamWRefState> expected;
  for (const float w : state.w) expected.push_back({w, 0, 0});
  AdamWParams params = kParams;
  params.freeze_v_after = 5;
  for (params.t = 1; params.t <= 20; ++params.t) {
    const auto g = RandomFloats(n, 100 + static_cast<uint32_t>(params.t));
    state.Step(params, g);
    for (int64_t i = 0; i < n; ++i) AdamWRef(params, g[i], expected[i]);
  }
  std::vector<double> w, v;
  for (const AdamWRefState& e : expected) {
    w.push_back(e.theta);
    v.push_back(e.v);
  }
  // v can be as small as the square of the smallest of five gradients.
  ExpectClose(state.w, w, 2e-5, 2e-5);
  ExpectClose(state.v, v, 1e-9, 2e-6);
}

TEST(AdamW, WithoutGradientOnlyDecays) {
  float w = 2.0f, m = 0.0f, v = 0.0f;
  const float g = 0.0f;
  AdamWStep(kParams, {1, &g, &w, &w, &m, &v});
  EXPECT_FLOAT_EQ(w, 2.0f * (1.0f - 3e-3f * 0.1f));
}

}  // namespace
}  // namespace tug::kernels
