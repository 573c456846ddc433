// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_TABLES_FITTING_PLAN_H_
#define TUG_PLAN_TABLES_FITTING_PLAN_H_

// Other plans for the same GPUs, and which of them fit in a GPU's memory. REQUIRES: inputs resolved
// by ResolvePlan. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "plan/tables/plan_options.h"

namespace tug {

// Degrees of tensor or pipeline parallelism for a table: powers of two up to 16, and `chosen`.
// Each divides `parts` (heads or layers), and with `others`, the degree of the other kind, the
// GPUs.
std::vector<uint32_t> Degrees(uint32_t chosen, uint64_t parts, uint32_t gpus, uint32_t others);

PlanInputs WithDegrees(PlanInputs plan, uint32_t tensor, uint32_t pipeline);

// Bytes of parameters, gradients and optimizer of a GPU without ZeRO.
double GpuStateBytes(const PlanInputs& plan);

// Whether a GPU has memory for `bytes` of states, for activations and for buffers. Null if the
// memory is not given.
nlohmann::ordered_json FitsInMemory(const PlanInputs& plan, double bytes);

// Options of the plan that fits with the fewest GPUs per model, then the least recomputation, then
// the lowest stage: "--tensor 8 --recompute full, ZeRO-1: 62.1 GB per GPU". Empty if none fits, and
// without a shape.
std::string NearestFittingPlan(const PlanInputs& plan);

}  // namespace tug

#endif  // TUG_PLAN_TABLES_FITTING_PLAN_H_
