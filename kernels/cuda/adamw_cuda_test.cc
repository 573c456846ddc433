// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/adamw_cuda.h"

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/adamw_ref.h"
#include "kernels/reference/bf16_ref.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels::cuda {
namespace {

using AdamWCuda = CudaTest;

TEST_F(AdamWCuda, HasTheBitsOfTheFloatReferenceAtEverySize) {
  for (const int64_t n : {0, 1, 31, 32, 33, 1023, 600001}) {
    SCOPED_TRACE(n);
    auto w = RandomFloats(n, 1);
    std::vector<float> m(n, 0.0f), v(n, 0.0f);
    const OnDevice w_gpu(w, stream()), m_gpu(m, stream()), v_gpu(v, stream());
    AdamWParams params{.weight_decay = 0.1f, .freeze_v_after = 3, .gradient_scale = 0.5f};
    for (params.t = 1; params.t <= 5; ++params.t) {
      const auto g = RandomFloats(n, 100 + static_cast<uint32_t>(params.t));
      const OnDevice g_gpu(g, stream());
      const absl::Status status = AdamWStep(
          params, {n, g_gpu.data(), w_gpu.data(), w_gpu.data(), m_gpu.data(), v_gpu.data()},
          stream());
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_TRUE(stream().Synchronize().ok());
      const AdamWConstants constants = MakeAdamWConstants(params);
      for (int64_t i = 0; i < n; ++i) AdamWRefFloat(params, constants, g[i], w[i], m[i], v[i]);
    }
    ExpectSameBits(w_gpu.Read(), w);
    ExpectSameBits(m_gpu.Read(), m);
    ExpectSameBits(v_gpu.Read(), v);
  }
}

TEST_F(AdamWCuda, AlsoWritesTheWeightsAsBf16) {
  constexpr int64_t kCount = 1023;
  const auto w = RandomFloats(kCount, 1);
  const std::vector<float> zeros(kCount, 0.0f);
  const OnDevice g(RandomFloats(kCount, 2), stream()), w_in(w, stream()), w_out(zeros, stream());
  const OnDevice m(zeros, stream()), v(zeros, stream());
  const OnDevice w_bf16(std::vector<Bf16>(kCount), stream());
  const absl::Status status = AdamWStep(
      {}, {kCount, g.data(), w_in.data(), w_out.data(), m.data(), v.data(), w_bf16.data()},
      stream());
  ASSERT_TRUE(status.ok()) << status;
  ExpectSameBits(w_in.Read(), w);
  ExpectSameBits(w_bf16.Read(), As<Bf16>(w_out.Read()));
}

}  // namespace
}  // namespace tug::kernels::cuda
