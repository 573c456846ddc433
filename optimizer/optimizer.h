#ifndef TUG_OPTIMIZER_OPTIMIZER_H_
#define TUG_OPTIMIZER_OPTIMIZER_H_

// What makes weights out of gradients, for whoever holds both: a lane, of its segments; a worker
// that takes local steps, of its blocks. One file an optimizer, one row a file in optimizer.cc.
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

// What an update depends on beside the numbers it is made of.
struct UpdateStep {
  uint64_t t = 0;               // updates of these weights before it, skipped ones too
  double position = 0;          // in the schedule of the rate (learning_rate.h): steps of the job
  float step_scale = 1.0f;      // of the rate: what staleness leaves of it
  bool weight_decay = true;     // whether the configured decay is for these weights
  float gradient_scale = 1.0f;  // the gradient is an unscaled sum, and is multiplied by it first
};

// All of one length, but for what is empty: m and v that the optimizer does not keep, and a bf16
// copy that nobody wants. `weights_in` and `weights_out` are equal or apart.
struct UpdateSpans {
  std::span<const float> gradient;
  std::span<const float> weights_in;
  std::span<float> weights_out;
  std::span<float> m = {};                         // AdamW: mean; SGD: momentum
  std::span<float> v = {};                         // AdamW: mean square
  std::span<kernels::Bf16> weights_out_bf16 = {};  // also gets weights_out, rounded
};

// Immutable, thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // State beside the weights, an element each, zeros at the start.
  virtual bool keeps_m() const = 0;
  virtual bool keeps_v() const = 0;
  // Makes the next weights. The bits of an element depend on its own numbers and `step` only, so
  // spans may be cut in any way. REQUIRES: lengths as above.
  virtual void Update(const UpdateStep& step, const UpdateSpans& spans) const = 0;
};

// As `config`, all fields filled, says.
std::unique_ptr<const Optimizer> MakeOptimizer(const OptimizerConfig& config);

// What lanes update with: as `optimizer` says, or, where workers take local steps, as `sync.outer`
// says: SGD at a constant rate, without decay, on the mean of the differences they push.
std::unique_ptr<const Optimizer> MakeLaneOptimizer(const OptimizerConfig& optimizer,
                                                   const SyncConfig& sync);

}  // namespace tug

#endif  // TUG_OPTIMIZER_OPTIMIZER_H_
