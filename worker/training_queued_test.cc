// SPDX-License-Identifier: Apache-2.0
// The training loop with a model that queues: the same bits as with one that does not.

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "exchange/encode/device_encoder.h"
#include "worker/queued_model.h"
#include "worker/training_loop_test_support.h"

namespace tug {
namespace {

class TrainingQueuedTest : public TrainingLoopTest {
 protected:
  TrainingQueuedTest() { config_.mutable_model()->set_layers(3); }

  Outcome TrainQueued(bool in_place = false) {
    model_of_ = [this](TrainingRig& rig) {
      auto model = std::make_unique<QueuedModel>(rig.model());
      if (!expected_end_.ok()) model->Fail(expected_end_);
      queued_ = model.get();
      return model;
    };
    Outcome outcome = Train(in_place, script_);
    model_of_ = nullptr;
    return outcome;
  }
  void ExpectSameBitsQueued() {
    const Outcome at_once = Train(false, script_);
    const Outcome queued = TrainQueued();
    ExpectSameBits(at_once, queued);
    EXPECT_EQ(queued.held.weights, queued.predicted_held.weights);
    EXPECT_EQ(queued.held.gradients, queued.predicted_held.gradients);
    EXPECT_EQ(queued.traffic.pushed_bytes, at_once.traffic.pushed_bytes);
  }

  std::function<void(ControlBoard&, const WireHeader&)> script_;
  QueuedModel* queued_ = nullptr;  // of the last job
};

TEST_F(TrainingQueuedTest, MicroBatchesAndTiedHeads) {
  for (const bool tied : {false, true}) {
    for (const uint32_t micro_batch : {1, 2}) {
      SCOPED_TRACE(absl::StrCat("tied ", tied, ", micro-batch ", micro_batch));
      config_.mutable_model()->set_tied_head(tied);
      config_.mutable_train()->set_micro_batch(micro_batch);
      ExpectSameBitsQueued();
    }
  }
}

// All gradients except block 0's have the pass of the block below queued behind them when awaited.
TEST_F(TrainingQueuedTest, TheDeviceComputesTheNextBlockWhileTheHostTakesAGradient) {
  config_.mutable_train()->set_micro_batch(2);
  uint64_t behind = 0;
  uint64_t blocks = 0;
  model_of_ = [&](TrainingRig& rig) {
    struct Counted final : public QueuedModel {
      Counted(Model& model, uint64_t& to) : QueuedModel(model), to(to) {}
      ~Counted() override { to = behind_an_awaited_gradient(); }
      uint64_t& to;
    };
    blocks = static_cast<uint64_t>(rig.model().num_blocks());
    return std::make_unique<Counted>(rig.model(), behind);
  };
  Train();
  EXPECT_EQ(behind, steps_ * kVirtualWorkers * (blocks - 1));
}

TEST_F(TrainingQueuedTest, Clipping) {
  for (const auto clip : {OptimizerConfig::OFF, OptimizerConfig::PER_BLOCK}) {
    config_.mutable_optimizer()->set_clip(clip);
    config_.mutable_optimizer()->set_clip_norm(0.1);
    ExpectSameBitsQueued();
  }
}

TEST_F(TrainingQueuedTest, LocalSteps) {
  config_.mutable_sync()->set_local_steps(3);
  for (const auto clip :
       {OptimizerConfig::OFF, OptimizerConfig::PER_BLOCK, OptimizerConfig::GLOBAL}) {
    config_.mutable_optimizer()->set_clip(clip);
    config_.mutable_optimizer()->set_clip_norm(0.1);
    ExpectSameBitsQueued();
  }
}

TEST_F(TrainingQueuedTest, Placements) {
  config_.mutable_comm()->set_sparse_embeddings(false);
  for (const auto kind : {PlacementConfig::ZERO2, PlacementConfig::ZERO3}) {
    for (const uint32_t micro_batch : {1, 2}) {
      for (const uint32_t few : {1, 2, 100}) {
        SCOPED_TRACE(absl::StrCat(PlacementConfig::Kind_Name(kind), ", micro-batch ", micro_batch,
                                  ", ", few, " blocks"));
        config_.mutable_placement()->set_kind(kind);
        config_.mutable_placement()->set_gradient_blocks(few);
        config_.mutable_placement()->set_prefetch_blocks(few - 1);
        config_.mutable_train()->set_micro_batch(micro_batch);
        ExpectSameBitsQueued();
      }
    }
  }
}

TEST_F(TrainingQueuedTest, Bf16AsItIsPulledAndWidened) {
  config_.mutable_train()->set_precision(TrainConfig::BF16);
  for (const auto format : {CommConfig::BF16, CommConfig::FP32}) {
    config_.mutable_comm()->set_pull_format(format);
    ExpectSameBitsQueued();
  }
}

// An order to end that arrives during steps, and a schedule.
TEST_F(TrainingQueuedTest, OrdersAmidAStep) {
  script_ = [this](ControlBoard& board, const WireHeader& header) {
    if (header.kind != MessageKind::kPush) return;
    board.SetOrders({.go = true,
                     .pause = false,
                     .final_version = steps_,
                     .schedule = {.number = static_cast<uint32_t>(header.clock) + 1,
                                  .partition_bytes = 2 * kSegment * sizeof(float),
                                  .credit_bytes = 16 * kSegment * sizeof(float)}});
  };
  ExpectSameBitsQueued();
}

// A device reads from the worker's own memory.
TEST_F(TrainingQueuedTest, CopiesWeightsThatLiePlain) {
  config_.mutable_comm()->set_sparse_embeddings(false);
  ExpectSameBits(Train(/*in_place=*/true), TrainQueued());
}

TEST_F(TrainingQueuedTest, AnErrorOfTheDeviceEndsTheLoopBeforeAnythingIsPushed) {
  expected_end_ = absl::InternalError("GPU: broken");
  EXPECT_EQ(TrainQueued().traffic.pushed_bytes, 0u);
}

// Encodes nothing, and its device fails on the first copy of residuals.
class BrokenEncoder final : public DeviceEncoder {
 public:
  explicit BrokenEncoder(absl::Status status) : status_(std::move(status)) {}

  uint64_t device_bytes() const override { return 0; }
  absl::Status Allocate() override { return absl::OkStatus(); }
  absl::Status Send(int, std::span<const float>, std::span<float>,
                    const kernels::cuda::Stream&) override {
    return absl::OkStatus();
  }
  size_t FramesBytes(uint32_t) const override { return 0; }
  void Start(uint32_t, uint64_t) override {}
  void Bind(uint32_t, std::span<std::byte>) override {}
  std::vector<uint64_t> Take(uint32_t) override { return {}; }
  void GiveUpAllBut(std::span<const uint32_t>) override {}
  absl::StatusOr<std::vector<SegmentResidual>> CopyResiduals(uint32_t) override { return status_; }
  absl::Status RestoreResiduals(uint32_t, std::span<const SegmentResidual>) override {
    return absl::OkStatus();
  }
  double ResidualSquares(uint32_t) const override { return 0; }

 private:
  const absl::Status status_;
};

// After the last step nothing else is requested of the device.
TEST_F(TrainingQueuedTest, AnErrorOfTheLastCopyOfResidualsEndsTheLoop) {
  expected_end_ = absl::InternalError("GPU: broken");
  encoder_ = std::make_unique<BrokenEncoder>(expected_end_);
  saves_residuals_ = true;
  // The copy for the first virtual worker fails, so the last step is not reported.
  EXPECT_EQ(Train().losses.size(), (steps_ - 1) * kVirtualWorkers);
}

}  // namespace
}  // namespace tug
