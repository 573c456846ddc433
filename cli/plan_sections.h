#ifndef TUG_CLI_PLAN_SECTIONS_H_
#define TUG_CLI_PLAN_SECTIONS_H_

#include <map>
#include <string>
#include <vector>

#include "cli/plan_options.h"
#include "cli/plan_table.h"

namespace tug {

// Figures that the lectures print, by the first cell of the row beside which they stand.
using LectureFigures = std::map<std::string, std::string>;

// The formulas of plan/, as tables: a section a question. Those that ask for a shape, or for
// tokens, say so where there is none. Pure; one file each, plan_memory_sections.cc and
// plan_time_sections.cc.
PlanSection InputsSection(const PlanInputs& plan);
PlanSection ParametersSection(const PlanInputs& plan);
PlanSection StatesSection(const PlanInputs& plan, const LectureFigures& lectures);
PlanSection StagesSection(const PlanInputs& plan, const LectureFigures& lectures);
PlanSection ParameterServerSection(const PlanInputs& plan);
PlanSection ActivationsSection(const PlanInputs& plan);

PlanSection StepSection(const PlanInputs& plan);
PlanSection DeadlineSection(const PlanInputs& plan, const LectureFigures& lectures);
PlanSection TensorSection(const PlanInputs& plan);
PlanSection PipelineSection(const PlanInputs& plan);

}  // namespace tug

#endif  // TUG_CLI_PLAN_SECTIONS_H_
