// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_DEADLINE_H_
#define TUG_PLAN_DEADLINE_H_

#include "plan/activation_bytes.h"

namespace tug {

// Floating-point operations of training on the given number of tokens: 6 Psi per token, 2 forward
// and 4 backward; with full recomputation, which adds a second forward pass, 8 Psi. (Excludes the
// operations of attention itself, and of selective recomputation, a few percent.) Source: the
// lectures' "How many GPUs do we need?"; Kaplan et al. 2020, section 2.1; Narayanan et al. 2021
// (Megatron-LM). Pure.
double TrainingFlops(double parameters, double tokens, Recomputation recomputation);

// GPUs x achieved FLOPS of a GPU (peak x utilisation) x seconds = operations, solved for one of
// them. GPUs: not rounded. Pure.
double GpusForDeadline(double flops, double achieved_flops_per_second, double seconds);
double TrainingSeconds(double flops, double achieved_flops_per_second, double gpus);

}  // namespace tug

#endif  // TUG_PLAN_DEADLINE_H_
