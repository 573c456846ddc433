// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/sgd_cuda.h"

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/kernel_test_support.h"
#include "kernels/reference/sgd_ref.h"

namespace tug::kernels::cuda {
namespace {

using SgdCuda = CudaTest;

constexpr SgdParams kCases[] = {
    {.lr = 0.1f},
    {.lr = 0.1f, .weight_decay = 0.01f, .gradient_scale = 0.25f},
    {.lr = 0.05f, .momentum = 0.9f, .weight_decay = 0.01f, .gradient_scale = 0.5f},
    {.lr = 0.7f, .momentum = 0.9f, .nesterov = true, .gradient_scale = 0.125f},
};

TEST_F(SgdCuda, HasTheBitsOfTheFloatReferenceAtEverySizeAndOffset) {
  for (const SgdParams& params : kCases) {
    for (const int64_t n : {0, 1, 31, 32, 33, 1023, 70000}) {
      for (const int64_t offset : {0, 1}) {
        auto w = RandomFloats(n + offset, 1), u = RandomFloats(n + offset, 2);
        const OnDevice w_gpu(w, stream()), u_gpu(u, stream());
        for (uint32_t t = 0; t < 3; ++t) {
          const auto g = RandomFloats(n + offset, 100 + t);
          const OnDevice g_gpu(g, stream());
          const absl::Status status =
              SgdStep(params,
                      {n, g_gpu.data() + offset, w_gpu.data() + offset, w_gpu.data() + offset,
                       params.momentum == 0 ? nullptr : u_gpu.data() + offset},
                      stream());
          ASSERT_TRUE(status.ok()) << status;
          ASSERT_TRUE(stream().Synchronize().ok());
          for (int64_t i = offset; i < n + offset; ++i) SgdRef<float>(params, g[i], w[i], u[i]);
        }
        ExpectSameBits(w_gpu.Read(), w);
        ExpectSameBits(u_gpu.Read(), u);
      }
    }
  }
}

TEST_F(SgdCuda, AlsoWritesTheWeightsAsBf16) {
  constexpr int64_t kCount = 1023;
  const auto w = RandomFloats(kCount, 1);
  const OnDevice g(RandomFloats(kCount, 2), stream()), w_in(w, stream()), w_out(w, stream());
  const OnDevice w_bf16(std::vector<Bf16>(kCount), stream());
  const absl::Status status =
      SgdStep({.lr = 0.1f}, {kCount, g.data(), w_in.data(), w_out.data(), nullptr, w_bf16.data()},
              stream());
  ASSERT_TRUE(status.ok()) << status;
  ExpectSameBits(w_in.Read(), w);
  ExpectSameBits(w_bf16.Read(), As<Bf16>(w_out.Read()));
}

}  // namespace
}  // namespace tug::kernels::cuda
