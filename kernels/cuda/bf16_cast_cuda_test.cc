// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/bf16_cast_cuda.h"

#include <bit>

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels::cuda {
namespace {

class Bf16CastCuda : public CudaTest {
 protected:
  // Casts the elements from `offset` on; the others must remain unchanged.
  void ExpectBitsOfTheCpu(const std::vector<float>& src, int64_t offset) {
    const auto n = static_cast<int64_t>(src.size()) - offset;
    std::vector<Bf16> narrow(src.size() + 1, Bf16{7});
    std::vector<float> wide(src.size() + 1, 7.0f);
    const OnDevice src_gpu(src, stream()), wide_gpu(wide, stream());
    const OnDevice narrow_gpu(narrow, stream());
    kernels::Bf16FromFloat(src.data() + offset, narrow.data() + offset, n);
    kernels::FloatFromBf16(narrow.data() + offset, wide.data() + offset, n);
    absl::Status status =
        Bf16FromFloat(src_gpu.data() + offset, narrow_gpu.data() + offset, n, stream());
    ASSERT_TRUE(status.ok()) << status;
    status = FloatFromBf16(narrow_gpu.data() + offset, wide_gpu.data() + offset, n, stream());
    ASSERT_TRUE(status.ok()) << status;
    ExpectSameBits(narrow_gpu.Read(), narrow);
    ExpectSameBits(wide_gpu.Read(), wide);
  }
};

TEST_F(Bf16CastCuda, HasTheBitsOfTheCpuAtEverySizeAndOffset) {
  for (const int64_t n : {0, 1, 31, 32, 33, 1023, 4096}) {
    for (const int64_t offset : {0, 1, 3}) ExpectBitsOfTheCpu(RandomFloats(n + offset, 1), offset);
  }
}

// Every upper half with lower halves around its ties, including infinities, NaNs and denormals.
TEST_F(Bf16CastCuda, HasTheBitsOfTheCpuForEveryUpperHalf) {
  std::vector<float> src;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      src.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  ExpectBitsOfTheCpu(src, 0);
}

}  // namespace
}  // namespace tug::kernels::cuda
