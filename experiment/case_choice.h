#ifndef TUG_EXPERIMENT_CASE_CHOICE_H_
#define TUG_EXPERIMENT_CASE_CHOICE_H_

// Which cases of an experiment the command line names (--case).

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiment/experiment_plan.h"

namespace tug {

// By case, whether it is one: of "" all are; of the whole name of a case that one; else those that
// have all of the values "link=none, case=ring". Errors: INVALID_ARGUMENT: there is none, with the
// nearest name. Pure, thread-safe.
absl::StatusOr<std::vector<bool>> ChooseCases(const ExperimentPlan& plan, const std::string& text);

}  // namespace tug

#endif  // TUG_EXPERIMENT_CASE_CHOICE_H_
