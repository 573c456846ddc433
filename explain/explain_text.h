// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPLAIN_EXPLAIN_TEXT_H_
#define TUG_EXPLAIN_EXPLAIN_TEXT_H_

// Output of `tug explain`. Functions are pure; their text ends with a newline.

#include <string>
#include <vector>

#include "coordinator/trace/blame.h"
#include "coordinator/trace/critical_path.h"
#include "explain/what_if_prediction.h"
#include "nlohmann/json_fwd.hpp"

namespace tug {

// Where the time of all steps went: a row per cause with at least 1% of it, the workers to blame,
// and a row per step.
std::string BlameReport(const std::vector<StepPath>& paths);
nlohmann::ordered_json BlameJson(const std::vector<StepPath>& paths);

// Critical path of one step, in order of time.
std::string ChainText(const StepPath& path);
nlohmann::ordered_json ChainJson(const StepPath& path);

// Changes by their predicted benefit, and the error of the simulated job.
std::string WhatIfText(const WhatIfReport& report);

}  // namespace tug

#endif  // TUG_EXPLAIN_EXPLAIN_TEXT_H_
