#include "model/cuda_device.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

// In every build: whether for want of CUDA, of a GPU, or of one of that number.
TEST(NewCudaDevice, SaysThatThereIsNoGpu) {
  const auto none = NewCudaDevice(1000);
  EXPECT_TRUE(absl::IsUnavailable(none.status())) << none.status();
  EXPECT_EQ(none.status().message().substr(0, 6), "no GPU") << none.status();
}

}  // namespace
}  // namespace tug
