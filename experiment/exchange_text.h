#ifndef TUG_EXPERIMENT_EXCHANGE_TEXT_H_
#define TUG_EXPERIMENT_EXCHANGE_TEXT_H_

// Results of `tug experiment exchange` as tables, sentences and JSON. Pure, thread-safe.

#include <string>
#include <vector>

#include "experiment/exchange_results.h"
#include "nlohmann/json.hpp"

namespace tug {

// "link 200mbit, 8 MB".
std::string GroupTitle(const ExchangeResults& results, const std::string& link,
                       double planned_bytes);

// Tables: cells as text; the first line has the headings.
// A case a line, a link and size a column: step times.
std::vector<std::vector<std::string>> StepTable(const ExchangeResults& results);
// A line for each run.
std::vector<std::vector<std::string>> RunTable(const ExchangeResults& results);
// A line for each case that was measured, of the first link and largest size: who holds what.
std::vector<std::vector<std::string>> MemoryTable(const ExchangeResults& results);

// For each link and size a sentence, and one on memory.
std::vector<std::string> Findings(const ExchangeResults& results);
// What failed: "zero2, link none, 8 MB: ...".
std::vector<std::string> Failures(const ExchangeResults& results);
// Findings, failures and tables, as Markdown.
std::string ResultsMarkdown(const ExchangeResults& results);
// All figures, also of each step and node.
nlohmann::ordered_json ResultsJson(const ExchangeResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXCHANGE_TEXT_H_
