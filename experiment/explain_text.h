#ifndef TUG_EXPERIMENT_EXPLAIN_TEXT_H_
#define TUG_EXPERIMENT_EXPLAIN_TEXT_H_

// What `tug explain` says. All functions are pure and end their text with a newline.

#include <string>
#include <vector>

#include "coordinator/blame.h"
#include "coordinator/critical_path.h"
#include "experiment/what_if_prediction.h"
#include "nlohmann/json_fwd.hpp"

namespace tug {

// What the time of all steps went to, a row for what at least 1% of it did; who is blamed; a row
// for each step.
std::string BlameReport(const std::vector<StepPath>& paths);
nlohmann::ordered_json BlameJson(const std::vector<StepPath>& paths);

// The chain of one step, in order of time.
std::string ChainText(const StepPath& path);
nlohmann::ordered_json ChainJson(const StepPath& path);

// Changes by what they would bring, and how far the simulated job is off.
std::string WhatIfText(const WhatIfReport& report);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXPLAIN_TEXT_H_
