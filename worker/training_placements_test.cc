// SPDX-License-Identifier: Apache-2.0
// Workers that keep only part of the weights and gradients (placement.kind).

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "worker/training_loop_test_support.h"

namespace tug {
namespace {

class TrainingPlacementsTest : public TrainingLoopTest {
 protected:
  TrainingPlacementsTest() {
    config_.mutable_model()->set_layers(3);
    config_.mutable_comm()->set_sparse_embeddings(false);
  }
  Outcome TrainAs(PlacementConfig::Kind kind, uint32_t prefetch_blocks = 1,
                  uint32_t gradient_blocks = 2, bool in_place = false) {
    PlacementConfig& placement = *config_.mutable_placement();
    placement.set_kind(kind);
    placement.set_prefetch_blocks(prefetch_blocks);
    placement.set_gradient_blocks(gradient_blocks);
    Outcome outcome = Train(in_place);
    EXPECT_EQ(outcome.held.weights, outcome.predicted_held.weights);
    EXPECT_EQ(outcome.held.gradients, outcome.predicted_held.gradients);
    return outcome;
  }
  // One micro-batch per virtual worker.
  void UseOneMicroBatch() { config_.mutable_train()->set_micro_batch(2); }
};

TEST_F(TrainingPlacementsTest, ChangeNoBitAndHoldWhatTheFormulasSay) {
  for (const bool tied : {false, true}) {
    for (const uint32_t micro_batch : {1, 2}) {
      SCOPED_TRACE(absl::StrCat("tied ", tied, ", micro-batch ", micro_batch));
      config_.mutable_model()->set_tied_head(tied);
      config_.mutable_train()->set_micro_batch(micro_batch);
      const Outcome all = TrainAs(PlacementConfig::SERVERS);
      ExpectSameBits(all, TrainAs(PlacementConfig::ZERO1));
      for (const uint32_t gradients : {2, 3, 100}) {
        ExpectSameBits(all, TrainAs(PlacementConfig::ZERO2, 1, gradients));
      }
      for (const uint32_t prefetch : {0, 1, 2, 100}) {
        SCOPED_TRACE(prefetch);
        ExpectSameBits(all, TrainAs(PlacementConfig::ZERO3, prefetch));
      }
    }
  }
}

TEST_F(TrainingPlacementsTest, KeepLessFromStageToStage) {
  UseOneMicroBatch();
  const Outcome all = TrainAs(PlacementConfig::ZERO1);
  const Outcome two = TrainAs(PlacementConfig::ZERO2);
  const Outcome three = TrainAs(PlacementConfig::ZERO3);
  EXPECT_EQ(two.held.weights, all.held.weights);
  EXPECT_LT(two.held.gradients, all.held.gradients / kVirtualWorkers);
  EXPECT_LT(three.held.weights, all.held.weights);
  EXPECT_EQ(three.held.gradients, two.held.gradients);
}

TEST_F(TrainingPlacementsTest, ReadsWeightsInPlaceWithoutHoldingAny) {
  UseOneMicroBatch();
  const Outcome all = TrainAs(PlacementConfig::SERVERS);
  const Outcome in_place = TrainAs(PlacementConfig::ZERO3, 1, 2, /*in_place=*/true);
  ExpectSameBits(all, in_place);
  EXPECT_EQ(in_place.held.weights, 0u);
  EXPECT_EQ(in_place.traffic.copies_held, 0u) << "they are let go of in time";
}

TEST_F(TrainingPlacementsTest, PacksMatricesAgainInBf16) {
  config_.mutable_train()->set_precision(TrainConfig::BF16);
  config_.mutable_comm()->set_pull_format(CommConfig::BF16);
  for (const bool tied : {false, true}) {
    config_.mutable_model()->set_tied_head(tied);
    const Outcome all = TrainAs(PlacementConfig::SERVERS);
    const Outcome three = TrainAs(PlacementConfig::ZERO3);
    ExpectSameBits(all, three);
    EXPECT_LT(three.held.weights, all.held.weights);
  }
}

TEST_F(TrainingPlacementsTest, ComputesWhatIsNotKeptAgain) {
  for (const auto recompute : {TrainConfig::SELECTIVE, TrainConfig::FULL, TrainConfig::BLOCK}) {
    config_.mutable_train()->set_recompute(recompute);
    ExpectSameBits(TrainAs(PlacementConfig::SERVERS), TrainAs(PlacementConfig::ZERO3, 0));
  }
}

TEST_F(TrainingPlacementsTest, TrainAllFamilies) {
  config_.mutable_data()->set_path(testing::TempDir() + "/lines.txt");
  for (const auto family : {ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    for (const auto norm : {ModelConfig::PRE, ModelConfig::POST}) {
      for (const bool tied : {false, true}) {
        if (tied && family == ModelConfig::ENCODER) continue;
        SCOPED_TRACE(absl::StrCat(ModelConfig::Family_Name(family), " tied ", tied));
        config_.mutable_model()->set_family(family);
        config_.mutable_model()->set_norm(norm);
        config_.mutable_model()->set_tied_head(tied);
        const Outcome all = TrainAs(PlacementConfig::SERVERS);
        ExpectSameBits(all, TrainAs(PlacementConfig::ZERO3, 0));
        ExpectSameBits(all, TrainAs(PlacementConfig::ZERO3, 1));
      }
    }
  }
}

// A block is pushed once, and pulled before the forward and the backward pass, except what stays in
// the window: the last two blocks, and blocks 1 and 0 between virtual workers.
TEST_F(TrainingPlacementsTest, PullABlockForEachOfItsPasses) {
  UseOneMicroBatch();
  const Outcome all = TrainAs(PlacementConfig::ZERO2);
  const Outcome three = TrainAs(PlacementConfig::ZERO3, 0);
  EXPECT_EQ(three.traffic.pushed_bytes, all.traffic.pushed_bytes);
  EXPECT_GT(three.traffic.pulled_bytes, all.traffic.pulled_bytes * kVirtualWorkers * 3 / 2);
  EXPECT_LT(TrainAs(PlacementConfig::ZERO3, 2).traffic.pulled_bytes, three.traffic.pulled_bytes);
}

}  // namespace
}  // namespace tug
