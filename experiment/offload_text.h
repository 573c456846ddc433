#ifndef TUG_EXPERIMENT_OFFLOAD_TEXT_H_
#define TUG_EXPERIMENT_OFFLOAD_TEXT_H_

// Results of `tug experiment offload` as tables, sentences and JSON. Pure, thread-safe.

#include <string>
#include <vector>

#include "experiment/offload_results.h"
#include "nlohmann/json_fwd.hpp"

namespace tug {

// A line for each run: cells as text; the first line has the headings.
std::vector<std::vector<std::string>> OffloadTable(const OffloadResults& results);
// What overlapping hides, and what is left of it; empty where there is nothing to compare.
std::vector<std::string> OffloadFindings(const OffloadResults& results);
// What failed: "offload: ...".
std::vector<std::string> OffloadFailures(const OffloadResults& results);
// Table, findings and failures, as Markdown.
std::string OffloadMarkdown(const OffloadResults& results);
// All figures, also of each step and pass.
nlohmann::ordered_json OffloadJson(const OffloadResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_OFFLOAD_TEXT_H_
