// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_OPTIMIZER_LEARNING_RATE_H_
#define TUG_OPTIMIZER_LEARNING_RATE_H_

#include "proto/job.pb.h"

namespace tug {

// Learning rate at `step`, which is 0-based and may be fractional (several updates per step).
// During warm-up (step < warmup), for every schedule:
//   peak * (step + 1) / (warmup + 1)
// After it, by schedule, with f = (step - warmup) / (decay - warmup):
//   COSINE         min + (peak - min) * (1 + cos(pi f)) / 2   Loshchilov and Hutter 2017, eq. 5
//   LINEAR         peak + (min - peak) * f
//   CONSTANT       peak, for ever
//   INVERSE_SQRT   max(min, peak * sqrt((warmup + 1) / (step + 1)))   Vaswani et al. 2017, eq. 3
//   STABLE_DECAY   peak up to step decay - decay / 5, or to the end of warm-up if that is later;
//                  then linear to min at decay   Hu et al. 2024, "MiniCPM", section 4
// From `decay` on the rate is min, except with CONSTANT and INVERSE_SQRT; INVERSE_SQRT does not
// read `decay`. The rate never rises after warm-up. REQUIRES: all fields of `config` are filled.
// Pure, thread-safe.
double LearningRateAt(const OptimizerConfig& config, double step);

}  // namespace tug

#endif  // TUG_OPTIMIZER_LEARNING_RATE_H_
