#ifndef TUG_PLAN_DEADLINE_H_
#define TUG_PLAN_DEADLINE_H_

#include "plan/activation_bytes.h"

namespace tug {

// Floating-point operations of a training on so many tokens: 6 Psi a token, 2 forward and 4
// backward; with full recomputation a second forward pass, 8 Psi. (The operations of attention
// itself are not counted; nor are those of selective recomputation, a few percent.)
// Source: the lectures' "How many GPUs do we need?"; Kaplan et al. 2020, section 2.1; Narayanan et
// al. 2021 (Megatron-LM). Pure.
double TrainingFlops(double parameters, double tokens, Recomputation recomputation);

// GPUs x FLOPS of a GPU, as achieved (peak x utilisation), x seconds = operations, solved for one
// of them. GPUs: not rounded. Pure.
double GpusForDeadline(double flops, double achieved_flops_per_second, double seconds);
double TrainingSeconds(double flops, double achieved_flops_per_second, double gpus);

}  // namespace tug

#endif  // TUG_PLAN_DEADLINE_H_
