// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_OPTIMIZER_ADAMW_PARAMS_H_
#define TUG_OPTIMIZER_ADAMW_PARAMS_H_

#include "kernels/adamw.h"
#include "optimizer/optimizer.h"

namespace tug {

// Parameters of the AdamW kernel for one update, for callers that run the kernel themselves, on a
// GPU for example. REQUIRES: all fields of `config` are filled. Pure.
kernels::AdamWParams AdamWParamsAt(const OptimizerConfig& config, const UpdateStep& step);

}  // namespace tug

#endif  // TUG_OPTIMIZER_ADAMW_PARAMS_H_
