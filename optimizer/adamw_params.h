#ifndef TUG_OPTIMIZER_ADAMW_PARAMS_H_
#define TUG_OPTIMIZER_ADAMW_PARAMS_H_

#include "kernels/adamw.h"
#include "optimizer/optimizer.h"

namespace tug {

// What AdamW's kernel takes for an update, for whoever runs it elsewhere than Optimizer::Update
// does. `config` has all fields filled. Pure.
kernels::AdamWParams AdamWParamsAt(const OptimizerConfig& config, const UpdateStep& step);

}  // namespace tug

#endif  // TUG_OPTIMIZER_ADAMW_PARAMS_H_
