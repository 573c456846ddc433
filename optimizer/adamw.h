// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_OPTIMIZER_ADAMW_H_
#define TUG_OPTIMIZER_ADAMW_H_

#include "optimizer/optimizer.h"

namespace tug {

// AdamW (kernels/adamw.h) with the job's schedule; t of its bias corrections is step.t + 1. From
// position `freeze_v_after` on, v no longer changes.
// Immutable, thread-safe.
class AdamW final : public Optimizer {
 public:
  // REQUIRES: all fields of `config` are filled.
  explicit AdamW(const OptimizerConfig& config) : config_(config) {}

  bool keeps_m() const override { return true; }
  bool keeps_v() const override { return true; }
  void Update(const UpdateStep& step, const UpdateSpans& spans) const override;

 private:
  const OptimizerConfig config_;
};

}  // namespace tug

#endif  // TUG_OPTIMIZER_ADAMW_H_
