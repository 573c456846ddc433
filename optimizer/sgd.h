// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_OPTIMIZER_SGD_H_
#define TUG_OPTIMIZER_SGD_H_

#include "optimizer/optimizer.h"

namespace tug {

// SGD with momentum (kernels/sgd.h) with the job's schedule. m is the momentum, kept only if it is
// not 0. Immutable, thread-safe.
class Sgd final : public Optimizer {
 public:
  // REQUIRES: all fields of `config` are filled.
  explicit Sgd(const OptimizerConfig& config) : config_(config) {}

  bool keeps_m() const override { return config_.sgd().momentum() > 0; }
  bool keeps_v() const override { return false; }
  void Update(const UpdateStep& step, const UpdateSpans& spans) const override;

 private:
  const OptimizerConfig config_;
};

}  // namespace tug

#endif  // TUG_OPTIMIZER_SGD_H_
