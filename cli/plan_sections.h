#ifndef TUG_CLI_PLAN_SECTIONS_H_
#define TUG_CLI_PLAN_SECTIONS_H_

#include <optional>
#include <string>

#include "cli/plan_options.h"
#include "cli/plan_presets.h"
#include "cli/plan_table.h"

namespace tug {

// The formulas of plan/, as tables: a section a question. Those that lack what they ask for say so.
// REQUIRES: inputs that ResolvePlan has resolved. Pure.

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

// Of activations, what a GPU has at once; null: there is no shape to tell.
std::optional<double> GpuActivationBytes(const PlanInputs& plan);

}  // namespace tug

#endif  // TUG_CLI_PLAN_SECTIONS_H_
