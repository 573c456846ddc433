// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_TABLES_PLAN_TABLE_H_
#define TUG_PLAN_TABLES_PLAN_TABLE_H_

// Output of `tug plan`: sections of figures, one table each, as text and as JSON from the same
// cells. Pure.

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace tug {

// Format of a column's figures. kExactBytes and kBinaryBytes show the previous column in another
// form: they have no cells, and appear in text only.
enum class PlanForm { kText, kRatio, kBytes, kExactBytes, kBinaryBytes, kSeconds, kPercent };

struct PlanColumn {
  std::string heading;  // empty: JSON only
  std::string key;      // JSON key
  PlanForm form = PlanForm::kText;
};

// Text, number or bool; null: no value.
using PlanRow = std::vector<nlohmann::ordered_json>;

struct PlanSection {
  std::string key;    // JSON key
  std::string title;  // one line
  std::vector<PlanColumn> columns;
  std::vector<PlanRow> rows;
  std::vector<std::string> notes;  // lines below the table: assumptions of the figures
  // Text only: merges rows that differ only in their first cell, joining their names.
  bool joins_equal_rows = false;
};

// A section without rows consists of its title and notes.
std::string PlanText(const std::vector<PlanSection>& sections);
// {key: {"title", "rows": [{key of a column: value}], "notes"}}: bytes, seconds and counts, not
// rounded.
nlohmann::ordered_json PlanJson(const std::vector<PlanSection>& sections);

// Bytes in a suitable unit, rounded as in the lectures: "31.4 GB", "350 GB"; exact: "31.40625 GB";
// in powers of 1,024: "29.25 GiB".
std::string DecimalBytes(double bytes);
std::string ExactBytes(double bytes);
std::string BinaryBytes(double bytes);
// "1.23 s", "45.6 ms", "7.8 us".
std::string SecondsText(double seconds);
// "175,000,000,000".
std::string CountText(double count);

}  // namespace tug

#endif  // TUG_PLAN_TABLES_PLAN_TABLE_H_
