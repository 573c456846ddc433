#include "optimizer/adamw.h"

#include "base/check.h"
#include "kernels/adamw.h"
#include "optimizer/learning_rate.h"

namespace tug {

void AdamW::Update(uint64_t version, bool weight_decay, float gradient_scale,
                   std::span<const float> gradient, std::span<const float> weights_in,
                   std::span<float> weights_out, std::span<float> m, std::span<float> v,
                   std::span<kernels::Bf16> weights_out_bf16) const {
  TUG_CHECK(gradient.size() == weights_in.size() && gradient.size() == weights_out.size() &&
            gradient.size() == m.size() && gradient.size() == v.size());
  TUG_CHECK(weights_out_bf16.empty() || weights_out_bf16.size() == gradient.size());
  const AdamWConfig& adamw = config_.adamw();
  kernels::AdamWParams params;
  params.lr = static_cast<float>(LearningRateAt(config_, version));
  params.beta1 = static_cast<float>(adamw.beta1());
  params.beta2 = static_cast<float>(adamw.beta2());
  params.eps = static_cast<float>(adamw.epsilon());
  params.weight_decay = weight_decay ? static_cast<float>(adamw.weight_decay()) : 0.0f;
  params.t = static_cast<int64_t>(version + 1);
  params.gradient_scale = gradient_scale;
  kernels::AdamWStep(static_cast<int64_t>(gradient.size()), params, gradient.data(),
                     weights_in.data(), weights_out.data(), m.data(), v.data(),
                     weights_out_bf16.empty() ? nullptr : weights_out_bf16.data());
}

}  // namespace tug
