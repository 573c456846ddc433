// SPDX-License-Identifier: Apache-2.0
#include "plan/deadline.h"

namespace tug {

double TrainingFlops(double parameters, double tokens, Recomputation recomputation) {
  return (recomputation == Recomputation::kFull ? 8 : 6) * parameters * tokens;
}

double GpusForDeadline(double flops, double achieved_flops_per_second, double seconds) {
  return flops / (achieved_flops_per_second * seconds);
}

double TrainingSeconds(double flops, double achieved_flops_per_second, double gpus) {
  return flops / (achieved_flops_per_second * gpus);
}

}  // namespace tug
