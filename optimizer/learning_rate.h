#ifndef TUG_OPTIMIZER_LEARNING_RATE_H_
#define TUG_OPTIMIZER_LEARNING_RATE_H_

#include "proto/job.pb.h"

namespace tug {

// Learning rate at `step`, 0-based and maybe between two steps (where updates are of a part of a
// step). While it warms up (step < warmup), the same for all:
//   peak * (step + 1) / (warmup + 1)
// From there, by schedule, with f = (step - warmup) / (decay - warmup):
//   COSINE         min + (peak - min) * (1 + cos(pi f)) / 2   Loshchilov and Hutter 2017, eq. 5
//   LINEAR         peak + (min - peak) * f
//   CONSTANT       peak, for ever
//   INVERSE_SQRT   max(min, peak * sqrt((warmup + 1) / (step + 1)))   Vaswani et al. 2017, eq. 3
//   STABLE_DECAY   peak up to step decay - decay / 5, or to the end of warm-up if that is later;
//   then
//                  a straight line to min at decay               Hu et al. 2024, "MiniCPM", section
//                  4
// At `decay` and later, but with CONSTANT and INVERSE_SQRT, it is min. With INVERSE_SQRT decay is
// not read. It never rises after warm-up. `config` has all fields filled. Pure, thread-safe.
double LearningRateAt(const OptimizerConfig& config, double step);

}  // namespace tug

#endif  // TUG_OPTIMIZER_LEARNING_RATE_H_
