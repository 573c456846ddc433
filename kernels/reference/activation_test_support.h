// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_ACTIVATION_TEST_SUPPORT_H_
#define TUG_KERNELS_REFERENCE_ACTIVATION_TEST_SUPPORT_H_

// Tests of activations, shared by the CPU and GPUs.

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/activation.h"
#include "kernels/reference/activation_ref.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels {

// Of: a device (OnCpu or OnGpu) with the element type T and the operations Forward and Backward.
template <typename Of>
class ActivationTest : public Of {
 protected:
  using T = typename Of::T;

  struct Inputs {
    Inputs(int64_t r, int64_t w, float range, bool with_bias)
        : rows(r),
          width(w),
          x(As<T>(RandomFloats(r * w, 1, range))),
          dy(As<T>(RandomFloats(r * w, 2))),
          bias(with_bias ? RandomFloats(w, 3) : std::vector<float>()) {}

    int64_t rows, width;
    std::vector<T> x, dy;
    std::vector<float> bias;  // empty: none
  };
  struct Result {
    std::vector<T> pre, y, dx;
  };

  // `offset`: elements by which all arrays start after a 16-byte boundary.
  Result RunKernels(Activation activation, const Inputs& in, int64_t offset = 0) {
    const auto pre = this->Put(Behind(offset, in.x)), y = this->Put(Behind(offset, in.x));
    const auto dy = this->Put(Behind(offset, in.dy)), dx = this->Put(Behind(offset, in.x));
    const auto bias = this->Put(Behind(offset, in.bias));
    this->Forward(activation, in.rows, in.width, in.bias.empty() ? nullptr : bias.data() + offset,
                  pre.data() + offset, y.data() + offset);
    const int64_t n = in.rows * in.width;
    this->Backward(activation, n, dy.data() + offset, pre.data() + offset, dx.data() + offset);
    this->Backward(activation, n, dy.data() + offset, pre.data() + offset, dy.data() + offset);
    ExpectSameBits(dy.Read(), dx.Read());  // dx may be dy
    return {Without(offset, pre.Read()), Without(offset, y.Read()), Without(offset, dx.Read())};
  }

  void ExpectSame(const Result& a, const Result& b) {
    ExpectSameBits(a.pre, b.pre);
    ExpectSameBits(a.y, b.y);
    ExpectSameBits(a.dx, b.dx);
  }

  void ExpectMatchesReference(Activation activation, const Inputs& in) {
    SCOPED_TRACE(testing::Message() << in.rows << " rows of " << in.width);
    this->BeginRun(0);
    const Result one = RunKernels(activation, in);
    std::vector<double> y(in.x.size()), dx(in.x.size());
    for (size_t i = 0; i < in.x.size(); ++i) {
      const float bias = in.bias.empty() ? 0.0f : in.bias[i % in.width];
      ASSERT_EQ(one.pre[i], As<T>({static_cast<float>(ToDouble(in.x[i])) + bias})[0]);
      const double pre = ToDouble(one.pre[i]);
      y[i] = ActivationRef(activation, pre);
      dx[i] = ToDouble(in.dy[i]) * ActivationGradientRef(activation, pre);
    }
    ExpectClose(one.y, y, 1e-6, 1e-6 + kRounding<T>);
    ExpectClose(one.dx, dx, 2e-6, 2e-6 + kRounding<T>);
    for (int run = 1; run < this->kRuns; ++run) {
      this->BeginRun(run);
      ExpectSame(RunKernels(activation, in), one);
    }
  }
};
TYPED_TEST_SUITE_P(ActivationTest);

TYPED_TEST_P(ActivationTest, MatchesTheReferenceAtEverySizeAndRepeatsItsBits) {
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    for (const int64_t size : kTestSizes) {
      for (const bool with_bias : {false, true}) {
        this->ExpectMatchesReference(activation, {2, size, 3.0f, with_bias});
        this->ExpectMatchesReference(activation, {size, 17, 10.0f, with_bias});
      }
    }
    this->ExpectMatchesReference(activation, {1100, 300, 4.0f, true});
    this->ExpectMatchesReference(activation, {1, 1000, 1e4f, false});
  }
}

TYPED_TEST_P(ActivationTest, HasTheSameBitsOffTheBoundariesOfVectors) {
  const typename TestFixture::Inputs in(3, 64, 3.0f, true);
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    this->ExpectSame(this->RunKernels(activation, in, /*offset=*/1),
                     this->RunKernels(activation, in));
  }
}

TYPED_TEST_P(ActivationTest, PassesOnWhatIsNotANumber) {
  using T = typename TestFixture::T;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  typename TestFixture::Inputs in(1, 3, 1.0f, false);
  in.x = As<T>({nan, 1.0f, nan});
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    in.dy = As<T>({activation == Activation::kRelu ? nan : 1.0f, 1.0f, nan});
    const auto x = this->Put(in.x), y = this->Put(in.x), dy = this->Put(in.dy);
    this->Forward(activation, 1, 3, nullptr, x.data(), y.data());
    this->Backward(activation, 3, dy.data(), x.data(), dy.data());
    for (const int64_t i : {0, 2}) {
      EXPECT_TRUE(std::isnan(ToDouble(y.Read()[i])) && std::isnan(ToDouble(dy.Read()[i])));
    }
    EXPECT_TRUE(std::isfinite(ToDouble(y.Read()[1])));
  }
}

REGISTER_TYPED_TEST_SUITE_P(ActivationTest, MatchesTheReferenceAtEverySizeAndRepeatsItsBits,
                            HasTheSameBitsOffTheBoundariesOfVectors, PassesOnWhatIsNotANumber);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_ACTIVATION_TEST_SUPPORT_H_
