#ifndef TUG_MODEL_REPLAY_MODEL_H_
#define TUG_MODEL_REPLAY_MODEL_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/time_source.h"
#include "model/model.h"
#include "proto/job.pb.h"

namespace tug {

// Where a replay gets its time from, and spends it.
struct ReplayClock {
  std::function<absl::Time()> now = [time = RealTime()] { return time.Now(); };
  std::function<void(absl::Duration)> sleep = [](absl::Duration time) { absl::SleepFor(time); };
};

// A model that computes nothing (`compute: REPLAY`): each block's forward and backward pass sleeps
// as long as a profile says, so that the exchange runs as it would beside a model of those times
// and sizes. Weights are not read.
//
// Time. A pass of a block ends its time after it began. What a sleep overshot, or the gradient took
// longer to write, is taken off the next block's sleep, so that a whole pass takes the profile's
// time however many blocks it has; waiting between blocks is not made up for.
//
// Gradient. Element i of block b is (2 k - 255) / 2^20 with k = (i + b) mod 256: finite, no two
// neighbours alike, and exact in bf16; so are sums of any 2^15 virtual workers in FP32. It is the
// same in every pass, so memory that is bound again where it was bound last still holds it and is
// not written again. With several virtual workers a worker, theirs alternates, and each pass
// writes: memory that was given back meanwhile may hold anything.
//
// Losses are 0, over as many targets as the micro-batch has samples. Owned by one compute thread.
class ReplayModel final : public Model {
 public:
  // `profile`: checked, scaled (model/replay_profile.h).
  explicit ReplayModel(ReplayProfile profile, ReplayClock clock = {});

  // A vector a block, as ReplayLayout gives them.
  const BlockTable& blocks() const override { return table_; }
  std::optional<int> tied_block() const override { return std::nullopt; }
  void BindWeights(int block, WeightsView weights) override;
  void ReleaseWeights(int) override {}
  uint64_t weight_copy_bytes() const override { return 0; }
  // REQUIRES: between two bindings of the same memory to a block nobody writes to it but other
  // blocks that are bound to its beginning.
  void BindGradient(int block, std::span<float> gradient) override;
  void Start(const MicroBatch& batch) override;
  void Forward(int block) override;
  void Backward(int block) override;
  LossSums losses() const override;
  // A replay has none: never called, since checkpoints of a replay are refused before.
  void Logits(std::span<const int32_t> tokens, std::span<float> logits) override;
  void Logits(const MicroBatch& batch, int position, std::span<float> logits) override;

 private:
  struct Gradient {
    std::span<float> memory;
    bool written = false;
  };

  // Sleeps until `ms` after `begin`, but for what is owed.
  void SleepUntil(absl::Time begin, double ms);

  const ReplayProfile profile_;
  const BlockTable table_;
  const ReplayClock clock_;
  std::vector<Gradient> gradients_;  // by block
  absl::Duration owed_;              // time that passes so far took too long
  int samples_ = 0;                  // of the micro-batch
};

// Memory of a worker that replays: as PredictWorkerBytes (model/memory.h), without activations.
uint64_t PredictReplayBytes(const ReplayProfile& profile, uint32_t virtual_workers);

}  // namespace tug

#endif  // TUG_MODEL_REPLAY_MODEL_H_
