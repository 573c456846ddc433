#include "plan/memory_by_stage.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

// The lectures' GPT-3: 350, 350, 700, 700 and 700 GB.
TEST(StateBytes, OfMixedPrecisionAreTheLecturesForGpt3) {
  constexpr double kPsi = 175e9;
  EXPECT_EQ(kMixedPrecision.parameters * kPsi, 350e9);
  EXPECT_EQ(kMixedPrecision.gradients * kPsi, 350e9);
  EXPECT_EQ(kMixedPrecision.master * kPsi, 700e9);
  EXPECT_EQ(kMixedPrecision.first_moment * kPsi, 700e9);
  EXPECT_EQ(kMixedPrecision.second_moment * kPsi, 700e9);
  EXPECT_EQ(kMixedPrecision.Optimizer(), 12);
  EXPECT_EQ(kMixedPrecision.All(), 16);
  EXPECT_EQ(kFullPrecision.All(), 16);
}

// The lectures' 7.5B model on 64 GPUs: 120, 31.4, 16.6 and 1.9 GB.
TEST(WorkerStateBytes, OfEachStageAreTheLecturesFor7Point5BillionOn64Gpus) {
  const auto bytes = [](Stage stage) {
    return WorkerStateBytes(stage, kMixedPrecision, 7.5e9, 64);
  };
  EXPECT_DOUBLE_EQ(bytes(Stage::kDataParallel), 120e9);
  EXPECT_DOUBLE_EQ(bytes(Stage::kZero1), 31.40625e9);
  EXPECT_DOUBLE_EQ(bytes(Stage::kZero2), 16.640625e9);
  EXPECT_DOUBLE_EQ(bytes(Stage::kZero3), 1.875e9);
}

TEST(WorkerStateBytes, OfOneWorkerAreTheSameInAllStages) {
  for (const Stage stage : {Stage::kDataParallel, Stage::kZero1, Stage::kZero2, Stage::kZero3}) {
    EXPECT_DOUBLE_EQ(WorkerStateBytes(stage, kMixedPrecision, 1e9, 1), 16e9);
    EXPECT_DOUBLE_EQ(WorkerStateBytes(stage, kFullPrecision, 1e9, 1), 16e9);
  }
}

TEST(ParameterServerBytes, AreSharedByServersAndHoldWeightsInFp32) {
  EXPECT_DOUBLE_EQ(ParameterServerWorkerBytes(kMixedPrecision, 1e9), 4e9);
  EXPECT_DOUBLE_EQ(ParameterServerBytes(kMixedPrecision, 1e9, 1), 12e9);
  EXPECT_DOUBLE_EQ(ParameterServerBytes(kMixedPrecision, 1e9, 4), 3e9);
  EXPECT_DOUBLE_EQ(ParameterServerWorkerBytes(kFullPrecision, 1e9), kTugboatWorkerBytes * 1e9);
  EXPECT_DOUBLE_EQ(ParameterServerBytes(kFullPrecision, 1e9, 4), 3e9);
}

}  // namespace
}  // namespace tug
