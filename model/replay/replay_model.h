// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_REPLAY_REPLAY_MODEL_H_
#define TUG_MODEL_REPLAY_REPLAY_MODEL_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/time_source.h"
#include "model/model.h"
#include "proto/job.pb.h"

namespace tug {

// Clock and sleep function of a replay.
struct ReplayClock {
  std::function<absl::Time()> now = [time = RealTime()] { return time.Now(); };
  std::function<void(absl::Duration)> sleep = [](absl::Duration time) { absl::SleepFor(time); };
};

// A model that computes nothing (`compute: REPLAY`): each block's forward and backward pass sleeps
// as long as a profile says, so the exchange runs as for a model of these times and sizes. Weights
// are not read.
//
// Time. A block's pass ends its profiled time after it began. Overrun, of a sleep or of writing the
// gradient, is deducted from the next block's sleep, so that a whole pass takes the profile's time
// for any number of blocks. Waits between blocks are not compensated.
//
// Gradient. Element i of block b is (2 k - 255) / 2^20 with k = (i + b) mod 256: finite, neighbours
// always differ, and exact in bf16; so are sums of any 2^15 virtual workers in FP32. It is the same
// in every pass, so memory that is bound to the same block again still holds it and is not
// rewritten. With several virtual workers per worker their memory alternates and every pass writes:
// released memory may have changed.
//
// Losses are 0; the number of targets is that of the micro-batch's samples. Owned by one compute
// thread.
class ReplayModel final : public Model {
 public:
  // `profile`: checked and scaled (model/replay/replay_profile.h).
  explicit ReplayModel(ReplayProfile profile, ReplayClock clock = {});

  // One vector per block, as returned by ReplayLayout.
  const BlockTable& blocks() const override { return table_; }
  std::optional<int> tied_block() const override { return std::nullopt; }
  void BindWeights(int block, WeightsView weights) override;
  void ReleaseWeights(int) override {}
  uint64_t weight_copy_bytes() const override { return 0; }
  // REQUIRES: between two bindings of the same memory to a block, the memory is written only
  // through other blocks bound to the same address.
  void BindGradient(int block, std::span<float> gradient) override;
  void Start(const MicroBatch& batch) override;
  void Forward(int block) override;
  void Backward(int block) override;
  LossSums losses() const override;
  // Never called: a replay has no logits, and checkpoints of a replay are refused earlier.
  void Logits(std::span<const int32_t> tokens, std::span<float> logits) override;
  void Logits(const MicroBatch& batch, int position, std::span<float> logits) override;

 private:
  struct Gradient {
    std::span<float> memory;
    bool written = false;
  };

  // Sleeps until `ms` after `begin`, less the overrun so far.
  void SleepUntil(absl::Time begin, double ms);

  const ReplayProfile profile_;
  const BlockTable table_;
  const ReplayClock clock_;
  std::vector<Gradient> gradients_;  // by block
  absl::Duration owed_;              // overrun of earlier blocks
  int samples_ = 0;                  // of the micro-batch
};

// Memory of a replaying worker: like PredictWorkerBytes (model/transformer/memory.h), without
// activations.
uint64_t PredictReplayBytes(const ReplayProfile& profile, uint32_t virtual_workers);

}  // namespace tug

#endif  // TUG_MODEL_REPLAY_REPLAY_MODEL_H_
