// SPDX-License-Identifier: Apache-2.0
#include "model/backend/cuda_device.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

// True in every build: there is no CUDA, no GPU, or none of that number.
TEST(NewCudaDevice, SaysThatThereIsNoGpu) {
  const auto none = NewCudaDevice(1000);
  EXPECT_TRUE(absl::IsUnavailable(none.status())) << none.status();
  EXPECT_EQ(none.status().message().substr(0, 6), "no GPU") << none.status();
}

}  // namespace
}  // namespace tug
