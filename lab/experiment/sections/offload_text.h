// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_SECTIONS_OFFLOAD_TEXT_H_
#define TUG_LAB_EXPERIMENT_SECTIONS_OFFLOAD_TEXT_H_

// Results of `tug experiment offload` as tables, sentences and JSON. Pure, thread-safe.

#include <string>
#include <vector>

#include "lab/experiment/sections/offload_results.h"
#include "nlohmann/json_fwd.hpp"

namespace tug {

// A row per run: cells as text; the first row has the headings.
std::vector<std::vector<std::string>> OffloadTable(const OffloadResults& results);
// Cost of a step compared with all state on the device, in one sentence; empty: `plain` was not
// run with another case.
std::string OffloadAnswer(const OffloadResults& results);
// The bubbles that overlapping hides, and their remainder; empty if there is nothing to compare.
std::vector<std::string> OffloadFindings(const OffloadResults& results);
// Failed cases: "offload: ...".
std::vector<std::string> OffloadFailures(const OffloadResults& results);
// Answer, table, findings and failures, as Markdown.
std::string OffloadMarkdown(const OffloadResults& results);
// All figures, including those of each step and pass.
nlohmann::ordered_json OffloadJson(const OffloadResults& results);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_SECTIONS_OFFLOAD_TEXT_H_
