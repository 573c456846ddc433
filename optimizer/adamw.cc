// SPDX-License-Identifier: Apache-2.0
#include "optimizer/adamw.h"

#include <cmath>

#include "base/check.h"
#include "kernels/adamw.h"
#include "optimizer/learning_rate.h"

namespace tug {
namespace {

// Number of updates in `steps` steps of the job; all steps have equally many. REQUIRES: position >
// 0.
int64_t UpdatesIn(uint64_t steps, const UpdateStep& step) {
  return std::llround(static_cast<double>(step.t) / step.position * static_cast<double>(steps));
}

}  // namespace

// Declared in adamw_params.h.
kernels::AdamWParams AdamWParamsAt(const OptimizerConfig& config, const UpdateStep& step) {
  const AdamWConfig& adamw = config.adamw();
  kernels::AdamWParams params;
  params.lr = static_cast<float>(LearningRateAt(config, step.position)) * step.step_scale;
  params.beta1 = static_cast<float>(adamw.beta1());
  params.beta2 = static_cast<float>(adamw.beta2());
  params.eps = static_cast<float>(adamw.epsilon());
  params.weight_decay = step.weight_decay ? static_cast<float>(adamw.weight_decay()) : 0.0f;
  params.t = static_cast<int64_t>(step.t + 1);
  const uint64_t freeze_after = adamw.freeze_v_after();
  if (freeze_after > 0 && step.position >= static_cast<double>(freeze_after)) {
    params.freeze_v_after = UpdatesIn(freeze_after, step);
  }
  params.gradient_scale = step.gradient_scale;
  return params;
}

void AdamW::Update(const UpdateStep& step, const UpdateSpans& spans) const {
  const auto& [gradient, weights_in, weights_out, m, v, weights_out_bf16] = spans;
  TUG_CHECK(gradient.size() == weights_in.size() && gradient.size() == weights_out.size() &&
            gradient.size() == m.size() && gradient.size() == v.size());
  TUG_CHECK(weights_out_bf16.empty() || weights_out_bf16.size() == gradient.size());
  kernels::AdamWStep(AdamWParamsAt(config_, step),
                     {static_cast<int64_t>(gradient.size()), gradient.data(), weights_in.data(),
                      weights_out.data(), m.data(), v.data(),
                      weights_out_bf16.empty() ? nullptr : weights_out_bf16.data()});
}

}  // namespace tug
