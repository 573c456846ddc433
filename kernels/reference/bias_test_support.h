// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_BIAS_TEST_SUPPORT_H_
#define TUG_KERNELS_REFERENCE_BIAS_TEST_SUPPORT_H_

// Tests of the bias gradient, shared by the CPU and GPUs.

#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/bias_ref.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels {

// Of: a device (OnCpu or OnGpu) with the element type T and the operation Gradient.
template <typename Of>
class BiasTest : public Of {
 protected:
  using T = typename Of::T;

  void ExpectMatchesReference(int64_t rows, int64_t width) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
    const auto dy = As<T>(RandomFloats(rows * width, 4));
    const auto before = RandomFloats(width, 2);
    auto expected = ToDouble(before);
    BiasGradientRef<double>(rows, width, ToDouble(dy).data(), expected.data());
    const auto dy_there = this->Put(dy);
    std::vector<float> once;
    for (int run = 0; run < this->kRuns; ++run) {
      this->BeginRun(run);
      const auto dbias = this->Put(before);
      this->Gradient(rows, width, dy_there.data(), dbias.data());
      if (run == 0) {
        once = dbias.Read();
        ExpectClose(once, expected, 2e-6 + 1e-7 * static_cast<double>(rows) / 8, 1e-6);
      } else {
        ExpectSameBits(dbias.Read(), once);
      }
    }
  }
};
TYPED_TEST_SUITE_P(BiasTest);

TYPED_TEST_P(BiasTest, MatchesTheReferenceAtEverySizeAndRepeatsItsBits) {
  for (const int64_t size : kTestSizes) {
    this->ExpectMatchesReference(3, size);
    this->ExpectMatchesReference(size, 33);
  }
  this->ExpectMatchesReference(512, 384);
  this->ExpectMatchesReference(5, 50257);
}

REGISTER_TYPED_TEST_SUITE_P(BiasTest, MatchesTheReferenceAtEverySizeAndRepeatsItsBits);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_BIAS_TEST_SUPPORT_H_
