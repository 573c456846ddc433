// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_PLAN_CASE_CHOICE_H_
#define TUG_LAB_EXPERIMENT_PLAN_CASE_CHOICE_H_

// Selects the cases of an experiment that the command line names (--case).

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/experiment/plan/experiment_plan.h"

namespace tug {

// By case, whether it is selected. "" selects all; the full name of a case that one; else all cases
// with all of the values "link=none, case=ring". Errors: INVALID_ARGUMENT: no such case, with the
// nearest name. Pure, thread-safe.
absl::StatusOr<std::vector<bool>> ChooseCases(const ExperimentPlan& plan, const std::string& text);

// Drops all other cases, so that a report leaves them out. Axes keep all their labels. `kept`: by
// case.
void KeepCases(const std::vector<bool>& kept, ExperimentPlan& plan);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_PLAN_CASE_CHOICE_H_
