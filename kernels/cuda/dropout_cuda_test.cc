// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dropout_cuda.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels::cuda {
namespace {

constexpr DropoutKey kKey{.seed = 0x0123456789abcdef, .step = 77, .sample = 5, .site = 3};

struct Inputs {
  int64_t samples;
  int64_t elements;
  int64_t width;
  bool bias;
  bool residual;
  float p;
};

template <typename T>
class DropoutCuda : public CudaTest {
 protected:
  // `offset`: elements by which the tensors start after an alignment boundary.
  void ExpectBitsOfTheCpu(const Inputs& in, int64_t offset = 0) {
    SCOPED_TRACE(testing::Message() << in.samples << " samples of " << in.elements << " width "
                                    << in.width << " p " << in.p << " offset " << offset);
    const int64_t n = in.samples * in.elements;
    auto x = As<T>(RandomFloats(n + offset, 1));
    if (n > 1) x[offset + 1] = As<T>({std::numeric_limits<float>::infinity()})[0];
    const auto bias = RandomFloats(in.width + offset, 2);
    const auto residual = As<T>(RandomFloats(n + offset, 3));
    ThreadPool pool(1);
    auto expected = x;
    kernels::DropoutAdd<T>(pool, {in.samples, in.elements, in.width, x.data() + offset,
                                  in.bias ? bias.data() + offset : nullptr,
                                  in.residual ? residual.data() + offset : nullptr, in.p, kKey,
                                  expected.data() + offset});
    const OnDevice y(x, this->stream()), bias_gpu(bias, this->stream());
    const OnDevice residual_gpu(residual, this->stream());
    const absl::Status status = DropoutAdd<T>(
        {in.samples, in.elements, in.width, y.data() + offset,
         in.bias ? bias_gpu.data() + offset : nullptr,
         in.residual ? residual_gpu.data() + offset : nullptr, in.p, kKey, y.data() + offset},
        this->stream());
    ASSERT_TRUE(status.ok()) << status;
    ExpectSameBits(y.Read(), expected);
  }
};

using ElementTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(DropoutCuda, ElementTypes);

TYPED_TEST(DropoutCuda, HasTheBitsOfTheCpuAtEverySize) {
  for (const float p : {0.0f, 0.1f, 0.9f}) {
    for (const int64_t size : kTestSizes) {
      if (size == 0) continue;
      this->ExpectBitsOfTheCpu({3, size, size, false, false, p});
      this->ExpectBitsOfTheCpu({2, size * 5, size, true, true, p});
      this->ExpectBitsOfTheCpu({2, size * 5, 5, true, false, p});
    }
    this->ExpectBitsOfTheCpu({2, 16 * 768, 768, true, true, p});
    this->ExpectBitsOfTheCpu({2, 16 * 768, 768, true, true, p}, 1);
    this->ExpectBitsOfTheCpu({0, 16, 16, false, true, p});
    this->ExpectBitsOfTheCpu({16, 0, 1, false, true, p});
  }
}

TYPED_TEST(DropoutCuda, BackwardMakesTheMaskOfTheForwardPassAgain) {
  const int64_t samples = 3, elements = 1000;
  const OnDevice y(As<TypeParam>(std::vector<float>(samples * elements, 1.0f)), this->stream());
  const auto dy = As<TypeParam>(RandomFloats(samples * elements, 9));
  const OnDevice dx(dy, this->stream());
  for (TypeParam* const x : {y.data(), dx.data()}) {
    const absl::Status status = DropoutAdd<TypeParam>({.samples = samples,
                                                       .elements_per_sample = elements,
                                                       .x = x,
                                                       .p = 0.5f,
                                                       .key = kKey,
                                                       .y = x},
                                                      this->stream());
    ASSERT_TRUE(status.ok()) << status;
  }
  const auto mask = y.Read(), gradient = dx.Read();
  for (size_t i = 0; i < dy.size(); ++i) {
    ASSERT_EQ(ToDouble(gradient[i]), ToDouble(dy[i]) * ToDouble(mask[i])) << i;
  }
}

}  // namespace
}  // namespace tug::kernels::cuda
