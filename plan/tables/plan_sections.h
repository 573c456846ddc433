// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_TABLES_PLAN_SECTIONS_H_
#define TUG_PLAN_TABLES_PLAN_SECTIONS_H_

#include <optional>
#include <string>

#include "plan/tables/plan_options.h"
#include "plan/tables/plan_presets.h"
#include "plan/tables/plan_table.h"

namespace tug {

// The formulas of plan/ as tables, one section per question. A section whose inputs are missing
// says so. REQUIRES: inputs resolved by ResolvePlan. Pure.

// plan_input_sections.cc
PlanSection InputsSection(const PlanInputs& plan, const std::string& name);
PlanSection ParametersSection(const PlanInputs& plan);

// plan_memory_sections.cc
PlanSection StatesSection(const PlanInputs& plan, const LectureFigures& lectures);
PlanSection StagesSection(const PlanInputs& plan, const LectureFigures& lectures);
PlanSection ParameterServerSection(const PlanInputs& plan);
PlanSection ActivationsSection(const PlanInputs& plan);

// plan_time_sections.cc
PlanSection StepSection(const PlanInputs& plan);
PlanSection DeadlineSection(const PlanInputs& plan, const LectureFigures& lectures);
PlanSection TensorSection(const PlanInputs& plan);
PlanSection PipelineSection(const PlanInputs& plan);

// "fits in 80 GB"; empty if the memory is not given: the column is not shown.
std::string FitsHeading(const PlanInputs& plan);

// Activation bytes that a GPU holds at once; nothing if there is no shape.
std::optional<double> GpuActivationBytes(const PlanInputs& plan);

}  // namespace tug

#endif  // TUG_PLAN_TABLES_PLAN_SECTIONS_H_
