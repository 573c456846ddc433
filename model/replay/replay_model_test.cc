// SPDX-License-Identifier: Apache-2.0
#include "model/replay/replay_model.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/bf16.h"

namespace tug {
namespace {

ReplayProfile Profile() {
  ReplayProfile profile;
  profile.set_name("small");
  profile.set_batch(4);
  for (int i = 0; i < 3; ++i) {
    ReplayBlock& block = *profile.add_blocks();
    block.set_parameters(300 + static_cast<uint64_t>(i));
    block.set_forward_ms(10);
    block.set_backward_ms(20);
  }
  return profile;
}

// Time advances only in sleeps, which overshoot.
class ReplayModelTest : public testing::Test {
 protected:
  ReplayModelTest()
      : model_(Profile(), {.now = [this] { return now_; },
                           .sleep =
                               [this](absl::Duration time) {
                                 now_ += time + overshoot_;
                                 slept_.push_back(time);
                               }}),
        gradients_(3) {
    for (int i = 0; i < 3; ++i) {
      gradients_[i].resize(300 + i);
      model_.BindGradient(i, gradients_[i]);
    }
  }

  void Pass() {
    MicroBatch batch;
    batch.samples = 4;
    batch.training = true;
    model_.Start(batch);
    for (int block = 0; block < 3; ++block) model_.Forward(block);
    for (int block = 2; block >= 0; --block) model_.Backward(block);
  }

  absl::Time now_ = absl::UnixEpoch();
  absl::Duration overshoot_;
  std::vector<absl::Duration> slept_;
  ReplayModel model_;
  std::vector<std::vector<float>> gradients_;
};

TEST_F(ReplayModelTest, APassTakesTheTimeOfTheProfile) {
  Pass();
  EXPECT_EQ(now_ - absl::UnixEpoch(), absl::Milliseconds(3 * 10 + 3 * 20));
  EXPECT_EQ(slept_.size(), 6u);
}

TEST_F(ReplayModelTest, SleepOvershootDoesNotAddUp) {
  overshoot_ = absl::Milliseconds(1);
  Pass();
  EXPECT_EQ(now_ - absl::UnixEpoch(), absl::Milliseconds(3 * 10 + 3 * 20 + 1));
}

TEST_F(ReplayModelTest, WaitingBetweenBlocksIsNotMadeUpFor) {
  MicroBatch batch;
  batch.samples = 4;
  model_.Start(batch);
  model_.Forward(0);
  now_ += absl::Milliseconds(100);  // weights of block 1 arrive late
  model_.Forward(1);
  EXPECT_EQ(now_ - absl::UnixEpoch(), absl::Milliseconds(10 + 100 + 10));
}

TEST_F(ReplayModelTest, EachPassBeginsAnew) {
  overshoot_ = absl::Milliseconds(50);  // longer than a block
  Pass();
  slept_.clear();
  Pass();
  EXPECT_EQ(slept_.front(), absl::Milliseconds(10));
}

TEST_F(ReplayModelTest, GradientsAreFiniteExactInBf16AndDifferFromNeighbourToNeighbour) {
  Pass();
  for (size_t block = 0; block < gradients_.size(); ++block) {
    const std::vector<float>& gradient = gradients_[block];
    std::vector<kernels::Bf16> bf16(gradient.size());
    std::vector<float> back(gradient.size());
    kernels::Bf16FromFloat(gradient.data(), bf16.data(), static_cast<int64_t>(gradient.size()));
    kernels::FloatFromBf16(bf16.data(), back.data(), static_cast<int64_t>(gradient.size()));
    EXPECT_EQ(gradient, back);
    for (size_t i = 0; i < gradient.size(); ++i) {
      const auto k = static_cast<float>((i + block) % 256);
      EXPECT_EQ(gradient[i], (2 * k - 255) / 1048576.0f) << block << " " << i;
    }
  }
}

TEST_F(ReplayModelTest, MemoryThatIsBoundAgainIsNotWrittenAgainButOtherMemoryIs) {
  Pass();
  gradients_[1][7] = 5;
  model_.BindGradient(1, gradients_[1]);
  Pass();
  EXPECT_EQ(gradients_[1][7], 5);
  std::vector<float> other(301);
  model_.BindGradient(1, other);
  Pass();
  model_.BindGradient(1, gradients_[1]);
  Pass();
  EXPECT_EQ(other, gradients_[1]);
}

// As with a buffer pool, whose free buffers blocks take.
TEST_F(ReplayModelTest, BlocksThatTakeTurnsInTheSameMemoryEachWriteTheirOwn) {
  Pass();
  const std::vector<std::vector<float>> expected = gradients_;
  std::vector<float> shared(302);
  for (int pass = 0; pass < 2; ++pass) {
    MicroBatch batch;
    batch.samples = 4;
    batch.training = true;
    model_.Start(batch);
    for (int block = 0; block < 3; ++block) model_.Forward(block);
    for (int block = 2; block >= 0; --block) {
      const std::span<float> gradient = std::span(shared).first(300 + static_cast<size_t>(block));
      model_.BindGradient(block, gradient);
      model_.Backward(block);
      EXPECT_TRUE(std::equal(gradient.begin(), gradient.end(), expected[block].begin())) << block;
    }
  }
}

TEST_F(ReplayModelTest, LossesAreZeroOverTheSamples) {
  Pass();
  EXPECT_EQ(model_.losses().loss, 0);
  EXPECT_EQ(model_.losses().targets, 4u);
  EXPECT_EQ(model_.blocks().blocks_size(), 3);
  EXPECT_FALSE(model_.tied_block().has_value());
}

TEST(PredictReplayBytes, CountsWeightsAndAGradientForEachVirtualWorker) {
  EXPECT_EQ(PredictReplayBytes(Profile(), 2) - PredictReplayBytes(Profile(), 1), 4u * 903);
}

}  // namespace
}  // namespace tug
