// SPDX-License-Identifier: Apache-2.0
#include "kernels/sgd.h"

#include "kernels/reference/kernel_test_support.h"
#include "kernels/reference/sgd_ref.h"

namespace tug::kernels {
namespace {

constexpr SgdParams kCases[] = {
    {.lr = 0.1f},
    {.lr = 0.1f, .weight_decay = 0.01f, .gradient_scale = 0.25f},
    {.lr = 0.05f, .momentum = 0.9f, .weight_decay = 0.01f, .gradient_scale = 0.5f},
    {.lr = 0.7f, .momentum = 0.9f, .nesterov = true, .gradient_scale = 0.125f},
};

TEST(Sgd, FollowsTheEquationsOverManyUpdatesAtEverySize) {
  for (const SgdParams& params : kCases) {
    for (const int64_t n : kTestSizes) {
      auto w = RandomFloats(n, 1);
      std::vector<float> u(n);
      auto w_ref = ToDouble(w);
      std::vector<double> u_ref(n);
      for (uint32_t t = 0; t < 20; ++t) {
        const auto g = RandomFloats(n, 100 + t);
        SgdStep(params, {n, g.data(), w.data(), w.data(), u.data()});
        for (int64_t i = 0; i < n; ++i) SgdRef<double>(params, g[i], w_ref[i], u_ref[i]);
      }
      ExpectClose(w, w_ref, 1e-5, 1e-5);
      ExpectClose(u, u_ref, 2e-6, 2e-6);
    }
  }
}

TEST(Sgd, HasTheBitsOfTheFloatReferenceInPlaceApartAndInParts) {
  for (const SgdParams& params : kCases) {
    for (const int64_t n : kTestSizes) {
      const auto g = RandomFloats(n, 2), before = RandomFloats(n, 3);
      auto w_ref = before, u_ref = RandomFloats(n, 4), u = u_ref, u_apart = u_ref;
      for (int64_t i = 0; i < n; ++i) SgdRef<float>(params, g[i], w_ref[i], u_ref[i]);
      auto w = before;
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, n / 3}, {n / 3, n}}) {
        SgdStep(params, {end - begin, g.data() + begin, w.data() + begin, w.data() + begin,
                         u.data() + begin});
      }
      ExpectSameBits(w, w_ref);
      ExpectSameBits(u, u_ref);
      std::vector<float> apart(n + 1, 7.0f);
      std::vector<Bf16> rounded(n + 1, Bf16{7});
      SgdStep(params, {n, g.data(), before.data(), apart.data(), u_apart.data(), rounded.data()});
      EXPECT_EQ(apart[n], 7.0f) << "wrote beyond the end";
      EXPECT_EQ(rounded[n], Bf16{7}) << "wrote beyond the end";
      apart.pop_back();
      ExpectSameBits(apart, w_ref);
      ExpectSameBits(u_apart, u_ref);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(rounded[i], Bf16FromFloatRef(w_ref[i])) << i;
    }
  }
}

TEST(Sgd, NeedsNoMomentumBufferWithoutMomentum) {
  const float g = 4.0f;
  float w = 3.0f;
  SgdStep({.lr = 0.5f, .gradient_scale = 0.25f}, {1, &g, &w, &w, nullptr});
  EXPECT_EQ(w, 2.5f);
}

TEST(CompensateDelay, HasTheBitsOfTheFloatReferenceAtEverySize) {
  for (const int64_t n : kTestSizes) {
    const auto g = RandomFloats(n, 1), w = RandomFloats(n, 2), old = RandomFloats(n, 3);
    std::vector<float> out(n), expected(n);
    std::vector<double> exact(n);
    CompensateDelay(n, 0.4f, 0.5f, g.data(), w.data(), old.data(), out.data());
    for (int64_t i = 0; i < n; ++i) {
      expected[i] = CompensateDelayRef<float>(0.4f, 0.5f, g[i], w[i], old[i]);
      exact[i] = CompensateDelayRef<double>(0.4f, 0.5f, g[i], w[i], old[i]);
    }
    ExpectSameBits(out, expected);
    ExpectClose(out, exact, 1e-7, 1e-6);
    auto in_place = g;
    CompensateDelay(n, 0.4f, 0.5f, in_place.data(), w.data(), old.data(), in_place.data());
    ExpectSameBits(in_place, expected);
  }
}

TEST(CompensateDelay, LeavesAGradientOfTheSameWeightsAlone) {
  const float g = 3.0f, w = 2.0f;
  float out = 0;
  CompensateDelay(1, 10.0f, 0.5f, &g, &w, &w, &out);
  EXPECT_EQ(out, 1.5f);
}

}  // namespace
}  // namespace tug::kernels
