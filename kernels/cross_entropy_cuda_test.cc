#include "kernels/cross_entropy_cuda.h"

#include "gtest/gtest.h"
#include "kernels/cross_entropy_test_support.h"
#include "kernels/cuda_test_support.h"

namespace tug::kernels::cuda {
namespace {

template <typename Element>
class CrossEntropyOnGpu : public OnGpu {
 public:
  using T = Element;
  // The CPU's by a third wider: expf of a GPU is within 2 units in the last place (2.4e-7; the
  // CPU's within 3e-7), its argument, up to 20 where it matters, within 20 * 2^-25 = 6e-7, and the
  // sum over a row of 52 terms a thread and 10 levels of threads and warps within 60 * 2^-24
  // = 3.6e-6 if all roundings go one way; of 50 that do not, 5e-7.
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

// Beyond what shared memory holds of a row on any GPU; a vocabulary of 50,257 is beyond what it
// holds on an emulated one (and on an A100).
TYPED_TEST(CrossEntropyCuda, MatchesTheReferenceOnALargeVocabulary) {
  this->ExpectMatchesReference(1, 100003, 10.0f);
}

TYPED_TEST(CrossEntropyCuda, PassesOnWhatIsNotANumberBesideTheLargestLogit) {
  this->ExpectPassesOnNan(2.0f);
}

}  // namespace
}  // namespace tug::kernels::cuda
