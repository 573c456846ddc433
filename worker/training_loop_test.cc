// SPDX-License-Identifier: Apache-2.0
#include "worker/training_loop.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/codecs/frames.h"
#include "worker/training_loop_test_support.h"

namespace tug {
namespace {

TEST_F(TrainingLoopTest, RowsOfTheEmbeddingGiveTheBitsOfTheWholeBlock) {
  const Outcome rows = Train();
  config_.mutable_comm()->set_sparse_embeddings(false);
  const Outcome whole = Train();
  ExpectSameBits(rows, whole);
  EXPECT_EQ(whole.traffic.runs, 0u);
  EXPECT_GT(rows.traffic.runs, 0u);
  EXPECT_LT(rows.traffic.pushed_bytes, whole.traffic.pushed_bytes * 8 / 10);
  EXPECT_LT(rows.traffic.pulled_bytes, whole.traffic.pulled_bytes);
}

TEST_F(TrainingLoopTest, RowsDoNotDependOnPartitions) {
  const Outcome small = Train();
  config_.mutable_comm()->set_partition_bytes(16 * kSegment * sizeof(float));
  ExpectSameBits(small, Train());
}

// The schedule is ordered during steps; the next step begins with it.
TEST_F(TrainingLoopTest, TakesAScheduleAtTheBeginningOfAStepAndSaysSo) {
  const Outcome expected = Train();
  uint32_t number = 0;
  std::map<uint64_t, int> pushes;  // by clock
  const Outcome actual = Train(false, [&](ControlBoard& board, const WireHeader& header) {
    if (header.kind != MessageKind::kPush) return;
    ++pushes[header.clock];
    number = static_cast<uint32_t>(header.clock) + 1;
    board.SetOrders({.go = true,
                     .pause = false,
                     .final_version = steps_,
                     .schedule = {.number = number,
                                  .partition_bytes = (number + 1) * kSegment * sizeof(float),
                                  .credit_bytes = 16 * kSegment * sizeof(float)}});
  });
  ExpectSameBits(expected, actual);
  // By step: the schedule ordered while the previous step was pushed.
  std::vector<uint32_t> schedules;
  for (uint32_t step = 0; step < steps_; ++step) {
    schedules.insert(schedules.end(), kVirtualWorkers, step);
  }
  EXPECT_EQ(actual.schedules, schedules);
  EXPECT_LT(pushes[4], pushes[0]) << "larger partitions";
}

// The last evaluation needs all rows, but it was not known to be the last at the time of the pull.
TEST_F(TrainingLoopTest, AnUnforeseenEndIsEvaluatedOnTheWholeEmbedding) {
  steps_ = 3;
  const Outcome foreseen = Train();
  const Outcome unforeseen = Train(false, [](ControlBoard& board, const WireHeader& header) {
    if (header.kind == MessageKind::kPush && header.clock == 2) {
      board.SetOrders({.go = true, .pause = true, .final_version = 0});
    }
    if (header.kind == MessageKind::kPull && header.block == 0 && header.clock == 3) {
      board.SetOrders({.go = true, .pause = true, .final_version = 3});
    }
  });
  ExpectSameBits(foreseen, unforeseen);
  EXPECT_GT(unforeseen.traffic.pulled_bytes, foreseen.traffic.pulled_bytes);
}

// Rows of the source's embedding; the decoder's is exchanged whole.
TEST_F(TrainingLoopTest, RowsGiveTheBitsOfTheWholeBlockForLinesToo) {
  config_.mutable_data()->set_path(testing::TempDir() + "/lines.txt");
  for (const auto family : {ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    config_.mutable_model()->set_family(family);
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(absl::StrCat(ModelConfig::Family_Name(family), " tied ", tied));
      config_.mutable_model()->set_tied_head(tied);
      config_.mutable_comm()->set_sparse_embeddings(true);
      const Outcome rows = Train();
      config_.mutable_comm()->set_sparse_embeddings(false);
      const Outcome whole = Train();
      ExpectSameBits(rows, whole);
      EXPECT_GT(rows.traffic.runs, 0u);
      EXPECT_EQ(whole.traffic.runs, 0u);
    }
  }
}

TEST_F(TrainingLoopTest, AClassifierCountsSamplesAndWhatItGetsRight) {
  config_.mutable_data()->set_path(testing::TempDir() + "/lines.txt");
  config_.mutable_model()->set_family(ModelConfig::ENCODER);
  const Outcome outcome = Train();
  EXPECT_EQ(outcome.targets, steps_ * 2 * kVirtualWorkers);
  EXPECT_LE(outcome.correct, outcome.targets);
  EXPECT_GT(outcome.correct, 0u);
}

TEST_F(TrainingLoopTest, ModelsInBf16TakeWeightsAsTheyArePulled) {
  config_.mutable_train()->set_precision(TrainConfig::BF16);
  config_.mutable_comm()->set_pull_format(CommConfig::BF16);
  const Outcome as_pulled = Train();
  config_.mutable_comm()->set_pull_format(CommConfig::FP32);
  const Outcome rounded_here = Train();
  EXPECT_LT(as_pulled.traffic.pulled_bytes, rounded_here.traffic.pulled_bytes);
  EXPECT_EQ(as_pulled.reports.size(), rounded_here.reports.size());
}

TEST_F(TrainingLoopTest, ATiedHeadExchangesTheWholeEmbedding) {
  config_.mutable_model()->set_tied_head(true);
  EXPECT_EQ(Train().traffic.runs, 0u);
}

// The worker releases a version of a block before the lane makes the next one.
TEST_F(TrainingLoopTest, WeightsInPlaceGiveTheSameBitsAndAreLetGoInTime) {
  config_.mutable_comm()->set_sparse_embeddings(false);
  const Outcome copied = Train();
  const Outcome in_place = Train(/*in_place=*/true);
  ExpectSameBits(copied, in_place);
  EXPECT_EQ(in_place.traffic.copies_held, 0u);
}

TEST_F(TrainingLoopTest, InPlaceAndRowsTogetherGiveTheSameBits) {
  const Outcome copied = Train();
  ExpectSameBits(copied, Train(/*in_place=*/true));
}

TEST_F(TrainingLoopTest, LocalStepsReadTheirOwnSamplesAndGiveTheSameBitsInPlace) {
  config_.mutable_sync()->set_local_steps(3);
  for (auto clip : {OptimizerConfig::OFF, OptimizerConfig::PER_BLOCK, OptimizerConfig::GLOBAL}) {
    config_.mutable_optimizer()->set_clip(clip);
    config_.mutable_optimizer()->set_clip_norm(0.1);
    config_.mutable_comm()->set_partition_bytes(kSegment * sizeof(float));
    const Outcome copied = Train();
    const uint64_t targets_a_step = 2 * kVirtualWorkers * config_.model().context();
    EXPECT_EQ(copied.targets, steps_ * 3 * targets_a_step);
    EXPECT_EQ(copied.traffic.runs, 0u) << "all rows have moved";
    ExpectSameBits(copied, Train(/*in_place=*/true));
    config_.mutable_comm()->set_partition_bytes(16 * kSegment * sizeof(float));
    ExpectSameBits(copied, Train());
  }
}

TEST_F(TrainingLoopTest, Bf16HalvesTheBytesAndChangesBits) {
  config_.mutable_comm()->set_sparse_embeddings(false);
  const Outcome fp32 = Train();
  PushCodecConfig& codec = *config_.mutable_comm()->mutable_push_codec();
  codec.mutable_bf16();
  codec.set_min_elements(0);
  codec.set_vectors(true);
  config_.mutable_comm()->set_pull_format(CommConfig::BF16);
  const Outcome bf16 = Train();
  const uint64_t max_frame_overhead = kFrameHeaderBytes + 6;
  EXPECT_GE(bf16.traffic.pushed_bytes, fp32.traffic.pushed_bytes / 2);
  EXPECT_LE(bf16.traffic.pushed_bytes,
            fp32.traffic.pushed_bytes / 2 + max_frame_overhead * bf16.traffic.frames);
  EXPECT_EQ(bf16.traffic.pulled_bytes, fp32.traffic.pulled_bytes / 2);
  EXPECT_NE(bf16.reports, fp32.reports);
  config_.mutable_comm()->set_sparse_embeddings(true);  // has no effect with this format
  ExpectSameBits(bf16, Train());
}

TEST_F(TrainingLoopTest, RowsGiveWayToACodecOnlyWhereItEncodesTheEmbedding) {
  PushCodecConfig& codec = *config_.mutable_comm()->mutable_push_codec();
  codec.mutable_bf16();
  codec.set_min_elements(0);
  codec.set_blocks("head");
  config_.mutable_comm()->set_pull_format(CommConfig::FP32);
  const Outcome rows = Train();
  EXPECT_GT(rows.traffic.runs, 0u);
  EXPECT_GT(rows.traffic.frames, 0u);
  config_.mutable_comm()->set_sparse_embeddings(false);
  ExpectSameBits(rows, Train());
}

TEST_F(TrainingLoopTest, ErrorFeedbackTrainsAndSaysWhatIsLeftOut) {
  PushCodecConfig& codec = *config_.mutable_comm()->mutable_push_codec();
  codec.mutable_bf16();
  codec.set_min_elements(0);
  const Outcome without = Train();
  EXPECT_EQ(without.residual_squares, std::vector<double>(without.residual_squares.size(), 0));
  codec.set_error_feedback(true);
  codec.set_warmup_steps(1);
  const Outcome with = Train();
  ASSERT_EQ(with.residual_squares.size(), steps_ * kVirtualWorkers);
  for (size_t i = 0; i < with.residual_squares.size(); ++i) {
    // A report may be made before the step's last pushes are encoded.
    const bool encoded = with.residual_squares[i] > 0;
    EXPECT_TRUE(i < kVirtualWorkers ? !encoded : encoded || i < 2 * kVirtualWorkers) << i;
    EXPECT_LT(with.residual_squares[i], 1e-2) << "of means";
  }
  EXPECT_NE(with.reports, without.reports);
  config_.mutable_comm()->set_partition_bytes(16 * kSegment * sizeof(float));
  ExpectSameBits(with, Train());
}

}  // namespace
}  // namespace tug
