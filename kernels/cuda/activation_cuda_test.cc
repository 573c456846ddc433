// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/activation_cuda.h"

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/activation_test_support.h"

namespace tug::kernels::cuda {
namespace {

template <typename Element>
class ActivationOnGpu : public OnGpu {
 public:
  using T = Element;

 protected:
  void Forward(Activation activation, int64_t rows, int64_t width, const float* bias, T* pre,
               T* y) {
    Expect(BiasActivationForward(activation, rows, width, bias, pre, y, stream()));
  }
  void Backward(Activation activation, int64_t n, const T* dy, const T* pre, T* dx) {
    Expect(ActivationBackward(activation, n, dy, pre, dx, stream()));
  }
};
using Types = testing::Types<ActivationOnGpu<float>, ActivationOnGpu<Bf16>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, ActivationTest, Types);

}  // namespace
}  // namespace tug::kernels::cuda
