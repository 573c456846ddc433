// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cross_entropy_cuda.h"

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/cross_entropy_test_support.h"

namespace tug::kernels::cuda {
namespace {

template <typename Element>
class CrossEntropyOnGpu : public OnGpu {
 public:
  using T = Element;
  // A third wider than the CPU's bound. expf of a GPU is within 2 units in the last place (2.4e-7;
  // the CPU's within 3e-7). Its argument, up to 20 where it matters, is within 20 * 2^-25 = 6e-7.
  // The sum over a row, 52 terms per thread and 10 levels of threads and warps, is within 60 *
  // 2^-24 = 3.6e-6 if all roundings have the same direction; for 50 that do not, within 5e-7.
  static constexpr double kGradientBound = 4e-6;

 protected:
  void CrossEntropy(const CrossEntropyArgs<T>& args) { Run(&cuda::CrossEntropy<T>, args); }
};
using Types = testing::Types<CrossEntropyOnGpu<float>, CrossEntropyOnGpu<Bf16>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, CrossEntropyTest, Types);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, CrossEntropyInPlaceTest, CrossEntropyOnGpu<float>);

template <typename Of>
using CrossEntropyCuda = CrossEntropyTest<Of>;
TYPED_TEST_SUITE(CrossEntropyCuda, Types);

// A row that exceeds the shared memory of any GPU; a vocabulary of 50,257 exceeds that of an
// emulated one (and of an A100).
TYPED_TEST(CrossEntropyCuda, MatchesTheReferenceOnALargeVocabulary) {
  this->ExpectMatchesReference(1, 100003, 10.0f);
}

TYPED_TEST(CrossEntropyCuda, PassesOnWhatIsNotANumberBesideTheLargestLogit) {
  this->ExpectPassesOnNan(2.0f);
}

}  // namespace
}  // namespace tug::kernels::cuda
