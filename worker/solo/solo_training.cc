// SPDX-License-Identifier: Apache-2.0
#include "worker/solo/solo_training.h"

#include <algorithm>

#include "base/status_macros.h"
#include "model/job_model.h"

namespace tug {

absl::Status SoloTraining::Do(TraceKind kind, uint64_t clock, int block,
                              absl::FunctionRef<absl::Status()> pass) {
  RETURN_IF_ERROR(
      device_.Begin(track_, {.kind = kind, .block = static_cast<uint32_t>(block), .clock = clock}));
  RETURN_IF_ERROR(pass());
  return device_.End();
}

absl::Status SoloTraining::Step(uint64_t clock, LossSums* sums) {
  const uint32_t samples = config_.train().micro_batch();
  uint64_t targets = 0;
  for (uint32_t m = 0; m < sampler_.share() / samples; ++m) {
    sampler_.Fill(clock, /*virtual_worker=*/0, m * samples, samples, batch_);
    targets += static_cast<uint64_t>(std::ranges::count_if(
        batch_.targets, [](int32_t target) { return target != kNoSampleTarget; }));
    RETURN_IF_ERROR(TrainOn(clock, m, sums));
  }
  const auto scale = static_cast<float>(1.0 / static_cast<double>(targets));
  RETURN_IF_ERROR(
      Do(TraceKind::kOptimizer, clock, 0, [&] { return device_.Update(clock, scale); }));
  return device_.Collect();
}

absl::Status SoloTraining::TrainOn(uint64_t clock, uint32_t micro_batch, LossSums* sums) {
  Model& model = device_.model();
  const uint32_t first = micro_batch * batch_.samples;
  MicroBatch batch = MicroBatchOf(batch_);
  batch.training = true;
  batch.accumulate = micro_batch > 0;
  batch.partial = first + batch_.samples < sampler_.share();
  batch.dropout = {config_.seed(), static_cast<uint32_t>(clock), first};
  model.Start(batch);
  const int blocks = model.num_blocks();
  for (int b = 0; b < blocks; ++b) {
    RETURN_IF_ERROR(Do(TraceKind::kForward, clock, b, [&] {
      model.Forward(b);
      return model.status();
    }));
  }
  for (int b = blocks - 1; b >= 0; --b) {
    RETURN_IF_ERROR(Do(TraceKind::kBackward, clock, b, [&] {
      model.Backward(b);
      return model.status();
    }));
  }
  if (sums == nullptr) return absl::OkStatus();
  const LossSums more = model.losses();
  sums->loss += more.loss;
  sums->targets += more.targets;
  sums->correct += more.correct;
  return model.status();
}

}  // namespace tug
