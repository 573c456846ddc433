// SPDX-License-Identifier: Apache-2.0
// Solo training on the GPU, compared with the CPU.
//
// Bound: relative error of a loss, as in training_cuda_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/cpu/thread_pool.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "worker/solo/solo_gpu.h"
#include "worker/training_loop_test_support.h"

namespace tug {
namespace {

constexpr double kLossBound = 1e-4;
constexpr uint64_t kSteps = 12;
constexpr uint32_t kMicroBatches = 2;

class SoloCudaTest : public TrainingLoopTest {
 protected:
  SoloCudaTest() {
    config_.mutable_cluster()->set_virtual_workers(1);
    config_.mutable_train()->set_micro_batch(config_.train().global_batch() / kMicroBatches);
    config_.mutable_optimizer()->set_warmup_steps(2);
    config_.mutable_optimizer()->set_learning_rate(1e-2);
    const auto info = PrepareTokenFile(config_.data(), testing::TempDir() + "/tokens.bin",
                                       TextFormOf(config_.model()));
    TUG_CHECK_OK(info);
    info->Resolve(*config_.mutable_data());
  }

  struct Result {
    std::vector<double> losses;
    std::vector<TraceEvent> events;
    uint64_t state_bytes = 0;
  };
  // The host waits for the losses of the steps from `sums_from` on.
  Result Take(SoloDevice& device, TrainingRig& rig, uint64_t sums_from = 0) {
    std::vector<std::vector<float>> weights;
    for (uint32_t id = 0; id < rig.table().size(); ++id) {
      std::vector<float>& part = weights.emplace_back(rig.table().segment(id).elements());
      for (size_t e = 0; e < part.size(); ++e) {
        part[e] = 0.01f * static_cast<float>((e * 2654435761u + id) % 101) - 0.5f;
      }
    }
    TUG_CHECK_OK(device.SetWeights(weights));
    TraceTrack track("device", {.first = 1, .end = kSteps}, 4096, time_);
    SoloTraining training(config_, rig.sampler(), device, track);
    Result result{.state_bytes = device.state_bytes()};
    for (uint64_t step = 0; step < kSteps; ++step) {
      LossSums sums;
      TUG_CHECK_OK(training.Step(step, step < sums_from ? nullptr : &sums));
      result.losses.push_back(sums.loss);
    }
    TUG_CHECK_OK(device.model().Synchronize());
    TUG_CHECK_OK(device.Collect());
    result.events.assign(track.events().begin(), track.events().end());
    return result;
  }
  Result OnCpu(int threads) {
    TrainingRig rig(config_);
    ThreadPool pool(threads);
    auto device = NewSoloCpu({config_, rig.table()}, pool);
    TUG_CHECK_OK(device);
    return Take(**device, rig);
  }
  Result OnGpu(uint64_t sums_from = 0) {
    TrainingRig rig(config_);
    auto device = NewSoloGpu(0, {config_, rig.table()});
    TUG_CHECK_OK(device);
    return Take(**device, rig, sums_from);
  }

  const RealTime time_;
};

void ExpectPassesInOrder(const std::vector<TraceEvent>& events, uint32_t blocks) {
  const size_t passes = size_t{2} * blocks * kMicroBatches;
  ASSERT_EQ(events.size(), (kSteps - 1) * (passes + 1));
  int64_t end_ns = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const size_t pass = i % (passes + 1);
    EXPECT_EQ(events[i].kind, pass == passes                 ? TraceKind::kOptimizer
                              : pass % (2 * blocks) < blocks ? TraceKind::kForward
                                                             : TraceKind::kBackward);
    EXPECT_GE(events[i].begin_ns, end_ns);
    EXPECT_GE(events[i].end_ns, events[i].begin_ns);
    end_ns = events[i].end_ns;
  }
}

TEST_F(SoloCudaTest, CpuLearnsWithSameBitsOnAnyNumberOfThreads) {
  const Result one = OnCpu(1), three = OnCpu(3);
  EXPECT_EQ(one.losses, three.losses);
  EXPECT_LT(one.losses.back(), one.losses.front() * 0.95);
  const TrainingRig rig(config_);
  uint64_t elements = 0;
  for (uint32_t b = 0; b < rig.table().num_blocks(); ++b) elements += rig.table().block_elements(b);
  EXPECT_EQ(one.state_bytes, 12 * elements) << "weights, m and v";
  ExpectPassesInOrder(one.events, rig.table().num_blocks());
}

TEST_F(SoloCudaTest, LearnsAsTheCpuDoesAlsoWhenItQueues) {
  const absl::Status gpu = kernels::cuda::CheckGpu();
  if (absl::IsUnavailable(gpu) && !kernels::cuda::IsGpuRequired()) {
    GTEST_SKIP() << "skipped: " << gpu.message();
  }
  kernels::cuda::SetEmulationSeed();
  const Result cpu = OnCpu(1), same = OnGpu(), queued = OnGpu(kSteps - 1);
  for (size_t i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(same.losses[i] / cpu.losses[i], 1, kLossBound) << i;
  }
  EXPECT_EQ(queued.losses.back(), same.losses.back());
  ExpectPassesInOrder(queued.events, TrainingRig(config_).table().num_blocks());
}

TEST_F(SoloCudaTest, AGpuHasAdamWOnly) {
  TrainingRig rig(config_);
  config_.mutable_optimizer()->set_algorithm(OptimizerConfig::SGD);
  const auto status = NewSoloGpu(0, {config_, rig.table()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

}  // namespace
}  // namespace tug
