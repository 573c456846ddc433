#ifndef TUG_OPTIMIZER_SGD_H_
#define TUG_OPTIMIZER_SGD_H_

#include "optimizer/optimizer.h"

namespace tug {

// SGD with momentum (kernels/sgd.h) with the job's schedule. Keeps m, the momentum, only where
// there is some. Immutable, thread-safe.
class Sgd final : public Optimizer {
 public:
  // `config` has all fields filled.
  explicit Sgd(const OptimizerConfig& config) : config_(config) {}

  bool keeps_m() const override { return config_.sgd().momentum() > 0; }
  bool keeps_v() const override { return false; }
  void Update(const UpdateStep& step, const UpdateSpans& spans) const override;

 private:
  const OptimizerConfig config_;
};

}  // namespace tug

#endif  // TUG_OPTIMIZER_SGD_H_
