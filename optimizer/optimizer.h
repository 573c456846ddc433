// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_OPTIMIZER_OPTIMIZER_H_
#define TUG_OPTIMIZER_OPTIMIZER_H_

// Optimizers: compute new weights from gradients. Used by lanes for their segments and by workers
// with local steps for their blocks. To add one: one file, one row in optimizer.cc.
//
//   const std::unique_ptr<const Optimizer> optimizer = MakeOptimizer(config.optimizer());
//   std::vector<float> m(optimizer->keeps_m() ? n : 0), v(optimizer->keeps_v() ? n : 0);  // zeros
//   optimizer->Update({.t = 0, .position = 0, .gradient_scale = 1.0f / tokens},
//                     {.gradient = sum, .weights_in = w, .weights_out = w, .m = m, .v = v});

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/bf16.h"
#include "proto/job.pb.h"

namespace tug {

// Inputs of an update besides its spans.
struct UpdateStep {
  uint64_t t = 0;               // earlier updates of these weights, skipped ones included
  double position = 0;          // position in the schedule (learning_rate.h), in steps of the job
  float step_scale = 1.0f;      // factor of the rate, for staleness
  bool weight_decay = true;     // whether the configured decay applies to these weights
  float gradient_scale = 1.0f;  // factor applied to the gradient first: it is an unscaled sum
};

// Spans of one length, except empty ones: m or v that the optimizer does not keep, and
// weights_out_bf16 if no bf16 copy is requested. `weights_in` and `weights_out` are equal or do not
// overlap.
struct UpdateSpans {
  std::span<const float> gradient;
  std::span<const float> weights_in;
  std::span<float> weights_out;
  std::span<float> m = {};                         // AdamW: mean; SGD: momentum
  std::span<float> v = {};                         // AdamW: mean square
  std::span<kernels::Bf16> weights_out_bf16 = {};  // weights_out, rounded
};

// Immutable, thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // State kept in addition to the weights: one float per element, initially 0.
  virtual bool keeps_m() const = 0;
  virtual bool keeps_v() const = 0;
  // Computes the next weights. The bits of an element depend on its own numbers and `step` only, so
  // callers may split spans anywhere. REQUIRES: lengths as UpdateSpans says.
  virtual void Update(const UpdateStep& step, const UpdateSpans& spans) const = 0;
};

// Creates the optimizer of `config`. REQUIRES: all fields are filled.
std::unique_ptr<const Optimizer> MakeOptimizer(const OptimizerConfig& config);

// Optimizer of the lanes: that of `optimizer`, or, if workers take local steps, that of
// `sync.outer`: SGD at a constant rate, without decay, on the mean of the differences that workers
// push.
std::unique_ptr<const Optimizer> MakeLaneOptimizer(const OptimizerConfig& optimizer,
                                                   const SyncConfig& sync);

}  // namespace tug

#endif  // TUG_OPTIMIZER_OPTIMIZER_H_
