// SPDX-License-Identifier: Apache-2.0
#include "optimizer/sgd.h"

#include "base/check.h"
#include "kernels/sgd.h"
#include "optimizer/learning_rate.h"

namespace tug {

void Sgd::Update(const UpdateStep& step, const UpdateSpans& spans) const {
  const auto& [gradient, weights_in, weights_out, m, v, weights_out_bf16] = spans;
  TUG_CHECK(gradient.size() == weights_in.size() && gradient.size() == weights_out.size() &&
            (!keeps_m() || gradient.size() == m.size()));
  TUG_CHECK(weights_out_bf16.empty() || weights_out_bf16.size() == gradient.size());
  const SgdConfig& sgd = config_.sgd();
  kernels::SgdParams params;
  params.lr = static_cast<float>(LearningRateAt(config_, step.position)) * step.step_scale;
  params.momentum = static_cast<float>(sgd.momentum());
  params.nesterov = sgd.nesterov();
  params.weight_decay = step.weight_decay ? static_cast<float>(sgd.weight_decay()) : 0.0f;
  params.gradient_scale = step.gradient_scale;
  kernels::SgdStep(params, {static_cast<int64_t>(gradient.size()), gradient.data(),
                            weights_in.data(), weights_out.data(), m.data(),
                            weights_out_bf16.empty() ? nullptr : weights_out_bf16.data()});
}

}  // namespace tug
