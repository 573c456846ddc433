// SPDX-License-Identifier: Apache-2.0
#include "model/replay/replay_model.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "model/replay/replay_profile.h"
#include "model/transformer/memory.h"

namespace tug {
namespace {

constexpr size_t kPeriod = 256;

// Two periods of the gradient: every block's gradient starts at some offset in the first.
constexpr std::array<float, 2 * kPeriod> kPattern = [] {
  std::array<float, 2 * kPeriod> values{};
  for (size_t i = 0; i < values.size(); ++i) {
    const int k = static_cast<int>(i % kPeriod);
    values[i] = static_cast<float>(2 * k - 255) / (1 << 20);
  }
  return values;
}();

void WriteGradient(size_t block, std::span<float> gradient) {
  const float* const pattern = &kPattern[block % kPeriod];
  for (size_t begin = 0; begin < gradient.size(); begin += kPeriod) {
    const size_t count = std::min(kPeriod, gradient.size() - begin);
    std::memcpy(&gradient[begin], pattern, count * sizeof(float));
  }
}

}  // namespace

ReplayModel::ReplayModel(ReplayProfile profile, ReplayClock clock)
    : profile_(std::move(profile)),
      table_(ReplayLayout(profile_)),
      clock_(std::move(clock)),
      gradients_(static_cast<size_t>(profile_.blocks_size())) {}

void ReplayModel::BindWeights(int block, WeightsView weights) {
  TUG_CHECK_EQ(weights.size(), profile_.blocks(block).parameters());
}

void ReplayModel::BindGradient(int block, std::span<float> gradient) {
  TUG_CHECK_EQ(gradient.size(), profile_.blocks(block).parameters());
  Gradient& bound = gradients_[static_cast<size_t>(block)];
  if (bound.memory.data() == gradient.data()) return;
  bound = {gradient, false};
}

void ReplayModel::Start(const MicroBatch& batch) {
  samples_ = batch.samples;
  owed_ = absl::ZeroDuration();
}

void ReplayModel::Forward(int block) {
  SleepUntil(clock_.now(), profile_.blocks(block).forward_ms());
}

void ReplayModel::Backward(int block) {
  const absl::Time begin = clock_.now();
  Gradient& gradient = gradients_[static_cast<size_t>(block)];
  TUG_CHECK(!gradient.memory.empty()) << "no gradient bound to block " << block;
  if (!gradient.written) {
    WriteGradient(static_cast<size_t>(block), gradient.memory);
    // Several blocks may use the same memory in turn.
    for (Gradient& other : gradients_) {
      if (other.memory.data() == gradient.memory.data()) other.written = false;
    }
    gradient.written = true;
  }
  SleepUntil(begin, profile_.blocks(block).backward_ms());
}

void ReplayModel::SleepUntil(absl::Time begin, double ms) {
  const absl::Time end = begin + absl::Milliseconds(ms) - owed_;
  const absl::Duration rest = end - clock_.now();
  if (rest > absl::ZeroDuration()) clock_.sleep(rest);
  owed_ = std::max(clock_.now() - end, absl::ZeroDuration());
}

LossSums ReplayModel::losses() const {
  return {.loss = 0, .targets = static_cast<uint64_t>(samples_), .correct = 0};
}

void ReplayModel::Logits(std::span<const int32_t>, std::span<float>) {
  TUG_CHECK(false) << "a replay has no logits";
}

void ReplayModel::Logits(const MicroBatch&, int, std::span<float>) {
  TUG_CHECK(false) << "a replay has no logits";
}

uint64_t PredictReplayBytes(const ReplayProfile& profile, uint32_t virtual_workers) {
  return ReplayParameters(profile) * sizeof(float) * (1 + uint64_t{virtual_workers}) +
         kProcessBytes;
}

}  // namespace tug
