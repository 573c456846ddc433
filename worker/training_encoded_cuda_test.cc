// SPDX-License-Identifier: Apache-2.0
// The training loop with gradients encoded on the GPU or by the host: the same frames, so the same
// bits.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "config/field_path.h"
#include "config/job_config.h"
#include "config/push_plan.h"
#include "exchange/encode/cuda_encoder.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "model/gpu/staged_model.h"
#include "worker/gradients/encoded_gradients.h"
#include "worker/training_loop_test_support.h"

namespace tug {
namespace {

class TrainingEncodedCudaTest : public TrainingLoopTest,
                                public testing::WithParamInterface<const char*> {
 protected:
  TrainingEncodedCudaTest() {
    config_.mutable_train()->set_eval_interval(0);
    config_.mutable_train()->set_steps(steps_ = 4);
    TUG_CHECK_OK(SetFieldFromText(config_, absl::StrCat("comm.push_codec.", GetParam()), "{}"));
    PushCodecConfig& codec = *config_.mutable_comm()->mutable_push_codec();
    if (codec.has_top_k()) codec.mutable_top_k()->set_density(0.1);
    codec.set_error_feedback(true);
    codec.set_warmup_steps(1);
    codec.set_min_elements(64);
    codec.set_vectors(false);
    codec.set_blocks("*");
  }
  void SetUp() override {
    const absl::Status gpu = kernels::cuda::CheckGpu();
    if (absl::IsUnavailable(gpu) && !kernels::cuda::IsGpuRequired()) {
      GTEST_SKIP() << "skipped: " << gpu.message();
    }
    kernels::cuda::SetEmulationSeed();
  }

  Outcome TrainOnGpu(bool encodes) {
    model_of_ = [this, encodes](TrainingRig& rig) {
      if (encodes) MakeEncoder(rig);
      auto made = NewStagedModel(0, {.model = rig.model_options(), .encoder = encoder_.get()});
      TUG_CHECK_OK(made);
      return std::move(made->model);
    };
    Outcome outcome = Train();
    encoder_.reset();
    return outcome;
  }
  void MakeEncoder(TrainingRig& rig) {
    EXPECT_TRUE(PushPlanOf(config_).gpu_encodes);
    std::vector<uint32_t> carried;
    for (uint32_t v = 0; v < kVirtualWorkers; ++v) carried.push_back(v);
    auto made = NewCudaEncoder({.codec = config_.comm().push_codec(),
                                .block_names = BlockNames(rig.model().blocks()),
                                .table = &rig.table(),
                                .virtual_workers = carried});
    TUG_CHECK_OK(made);
    encoder_ = *std::move(made);
  }
  void ExpectSameEncoded() {
    const Outcome gpu = TrainOnGpu(/*encodes=*/true);
    const Outcome host = TrainOnGpu(/*encodes=*/false);
    ExpectSameBits(gpu, host);
    EXPECT_GT(gpu.traffic.frames, 0u);
    EXPECT_EQ(gpu.traffic.frames, host.traffic.frames);
    EXPECT_EQ(gpu.traffic.pushed_bytes, host.traffic.pushed_bytes);
    EXPECT_EQ(gpu.held.gradients, gpu.predicted_held.gradients);
    ASSERT_FALSE(gpu.residual_squares.empty());
    EXPECT_EQ(gpu.residual_squares.front(), 0) << "a step that goes in full";
    EXPECT_GT(gpu.residual_squares.back(), 0);
  }
};

TEST_P(TrainingEncodedCudaTest, EncodesWhatTheHostWould) {
  config_.mutable_model()->set_tied_head(true);
  ExpectSameEncoded();
}

// Several segments per push; memory for the gradients of a few blocks.
TEST_P(TrainingEncodedCudaTest, EncodesTheSameWhereGradientsAreFreed) {
  config_.mutable_train()->set_micro_batch(2);
  config_.mutable_comm()->set_partition_bytes(4 * kSegment * sizeof(float));
  config_.mutable_placement()->set_kind(PlacementConfig::ZERO3);
  ExpectSameEncoded();
}

INSTANTIATE_TEST_SUITE_P(Codecs, TrainingEncodedCudaTest,
                         testing::Values("int8", "one_bit", "top_k"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace tug
