// SPDX-License-Identifier: Apache-2.0
#include "model/layers/recompute.h"

#include "base/check.h"

namespace tug {

std::vector<LayerRecompute> PlanRecompute(const TrainConfig& train, int64_t layers,
                                          bool inference) {
  constexpr LayerRecompute kOnlyInput = {.own = false};
  const int64_t k = train.recompute_layers();
  std::vector<LayerRecompute> plan(static_cast<size_t>(layers));
  for (int64_t layer = 0; layer < layers; ++layer) {
    LayerRecompute& of_layer = plan[static_cast<size_t>(layer)];
    if (inference || train.recompute() == TrainConfig::FULL) {
      of_layer = kOnlyInput;
    } else if (train.recompute() == TrainConfig::SELECTIVE) {
      of_layer.shared_attention = true;
    } else if (train.recompute() == TrainConfig::UNIFORM) {
      TUG_CHECK_GE(k, 1);
      of_layer = {
          .own = false, .shared_set = static_cast<int>(layer % k), .keeps_input = layer % k == 0};
    } else if (train.recompute() == TrainConfig::BLOCK && layer < k) {
      of_layer = kOnlyInput;
    }
  }
  return plan;
}

}  // namespace tug
