#ifndef TUG_OPTIMIZER_LEARNING_RATE_H_
#define TUG_OPTIMIZER_LEARNING_RATE_H_

#include <cstdint>

#include "proto/job.pb.h"

namespace tug {

// Learning rate of 0-based step `step`: linear warm-up, then half a cosine down to
// min_learning_rate at decay_steps, and constant from there (Loshchilov and Hutter 2017, without
// restarts).
//   step < warmup:   peak * (step + 1) / (warmup + 1)
//   else:            min + (peak - min) * (1 + cos(pi * (step - warmup) / (decay - warmup))) / 2
// `config` has all fields filled. Pure, thread-safe.
double LearningRateAt(const OptimizerConfig& config, uint64_t step);

}  // namespace tug

#endif  // TUG_OPTIMIZER_LEARNING_RATE_H_
