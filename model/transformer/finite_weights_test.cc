// SPDX-License-Identifier: Apache-2.0
#include "model/transformer/finite_weights.h"

#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/blocks.pb.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Tensors a [2, 3] and b [4].
BlockSpec TwoTensors() {
  BlockSpec block;
  block.set_name("h.0");
  TensorSpec* a = block.add_tensors();
  a->set_name("h.0.a");
  a->add_shape(2);
  a->add_shape(3);
  TensorSpec* b = block.add_tensors();
  b->set_name("h.0.b");
  b->add_shape(4);
  return block;
}

TEST(FiniteWeights, TheTensorOfAWeightThatIsNotFiniteIsNamed) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
    for (size_t at = 0; at < 10; ++at) {
      std::vector<float> weights(10, 0.5f);
      EXPECT_TRUE(CheckFinite("folder", TwoTensors(), 0, weights).ok());
      weights[at] = bad;
      const std::string name = at < 6 ? "h.0.a" : "h.0.b";
      const std::string element = "element " + std::to_string(at < 6 ? at : at - 6) + " of ";
      EXPECT_THAT(std::string(CheckFinite("folder", TwoTensors(), 0, weights).message()),
                  AllOf(HasSubstr("folder"), HasSubstr(element + name)));
      const std::span<const float> rest = std::span(weights).subspan(at);
      EXPECT_THAT(std::string(CheckFinite("folder", TwoTensors(), at, rest).message()),
                  HasSubstr(element + name));
    }
  }
}

}  // namespace
}  // namespace tug
