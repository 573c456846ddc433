// SPDX-License-Identifier: Apache-2.0
#include "cli/loaded_model.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "huggingface/gpt2_test_support.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LoadedModelTest : public HuggingFaceTest {};

// Used by tug eval and tug sample.
TEST_F(LoadedModelTest, RefusesWeightsThatAreNotFinite) {
  const JobConfig job = TinyJob();
  EXPECT_TRUE(LoadedModel::Load(WriteCheckpoint(job), 1, 1).ok());
  first_weight_ = std::numeric_limits<float>::infinity();
  const std::string folder = WriteCheckpoint(job);
  EXPECT_THAT(std::string(LoadedModel::Load(folder, 1, 1).status().message()),
              AllOf(HasSubstr(folder), HasSubstr("element 0 of wte.weight is inf")));
}

}  // namespace
}  // namespace tug
