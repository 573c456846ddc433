#ifndef TUG_CLI_PLAN_TABLE_H_
#define TUG_CLI_PLAN_TABLE_H_

// What `tug plan` answers: sections of figures, each a table, for people and for programs from the
// same cells. Pure.

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace tug {

// How a column's figures are written. kExactBytes and kBinaryBytes are other forms of the column
// before them: they have no cells, and are for people only.
enum class PlanForm { kText, kRatio, kBytes, kExactBytes, kBinaryBytes, kSeconds, kPercent };

struct PlanColumn {
  std::string heading;  // empty: for programs only
  std::string key;      // in JSON
  PlanForm form = PlanForm::kText;
};

// Text, number or bool; null: there is none.
using PlanRow = std::vector<nlohmann::ordered_json>;

struct PlanSection {
  std::string key;    // in JSON
  std::string title;  // one line
  std::vector<PlanColumn> columns;
  std::vector<PlanRow> rows;
  std::vector<std::string> notes;  // lines below: what the figures assume
  // For people: rows that differ in their first cell only are one, with the names joined.
  bool joins_equal_rows = false;
};

// A section without rows is its title and notes.
std::string PlanText(const std::vector<PlanSection>& sections);
// {key: {"title", "rows": [{key of a column: value}], "notes"}}: bytes, seconds and counts, not
// rounded.
nlohmann::ordered_json PlanJson(const std::vector<PlanSection>& sections);

// Bytes in the unit that suits, as the lectures round: "31.4 GB", "350 GB"; to the byte:
// "31.40625 GB"; in powers of 1,024: "29.25 GiB".
std::string DecimalBytes(double bytes);
std::string ExactBytes(double bytes);
std::string BinaryBytes(double bytes);
// "1.23 s", "45.6 ms", "7.8 us".
std::string SecondsText(double seconds);
// "175,000,000,000".
std::string CountText(double count);

}  // namespace tug

#endif  // TUG_CLI_PLAN_TABLE_H_
