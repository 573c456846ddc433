// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>

#include "kernels/cuda/device/cuda_test_support.h"
#include "model/backend/cuda_op_profile.h"

namespace tug {
namespace {

using CudaOpProfileTest = kernels::cuda::CudaTest;

TEST_F(CudaOpProfileTest, AddsUpWhatWasQueuedOnceItIsCollected) {
  const size_t bytes = 1 << 20;
  auto memory = kernels::cuda::DeviceBuffer::Create(bytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  CudaOpProfile profile(stream());
  const auto queue = [&](Op op, const OpWork& work) {
    const OpTimer timer(&profile, op, work);
    const absl::Status queued = kernels::cuda::FillZeroAsync(memory->data(), bytes, stream());
    EXPECT_TRUE(queued.ok()) << queued;
  };
  const auto entry = [&](Op op) { return profile.entries()[static_cast<size_t>(op)]; };

  queue(Op::kLoss, {.flops = 3, .bytes = 5});
  queue(Op::kPacking, {.bytes = 7});
  queue(Op::kLoss, {.flops = 3, .bytes = 5});
  EXPECT_EQ(entry(Op::kLoss).work.flops, 0);
  ASSERT_TRUE(profile.Collect().ok());
  EXPECT_EQ(entry(Op::kLoss).work.flops, 6);
  EXPECT_EQ(entry(Op::kLoss).work.bytes, 10);
  EXPECT_EQ(entry(Op::kPacking).work.bytes, 7);
  EXPECT_GT(entry(Op::kLoss).time.count(), 0);
  EXPECT_GT(entry(Op::kPacking).time.count(), 0);
  EXPECT_EQ(entry(Op::kEmbedding).time.count(), 0);

  const std::chrono::nanoseconds before = entry(Op::kPacking).time;
  queue(Op::kLoss, {.flops = 3});
  ASSERT_TRUE(profile.Collect().ok());
  EXPECT_EQ(entry(Op::kLoss).work.flops, 9);
  EXPECT_EQ(entry(Op::kPacking).time, before);
  profile.Clear();
  ASSERT_TRUE(profile.Collect().ok());
  EXPECT_EQ(entry(Op::kLoss).time.count(), 0);
}

}  // namespace
}  // namespace tug
