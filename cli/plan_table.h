#ifndef TUG_CLI_PLAN_TABLE_H_
#define TUG_CLI_PLAN_TABLE_H_

// What `tug plan` answers: sections of figures, each a table, for people and for programs from the
// same cells. Pure.

#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace tug {

struct PlanCell {
  PlanCell(std::string words) : text(std::move(words)), value(text) {}  // NOLINT: implicit
  PlanCell(const char* words) : PlanCell(std::string(words)) {}         // NOLINT: implicit
  PlanCell(std::string words, double number) : text(std::move(words)), value(number) {}

  std::string text;
  nlohmann::ordered_json value;
};

struct PlanSection {
  std::string key;    // in JSON
  std::string title;  // one line
  // Headings; those of `keys` that are empty are for people only: other forms of what another
  // column has. As many keys as headings, as cells in each row.
  std::vector<std::string> headings;
  std::vector<std::string> keys;
  std::vector<std::vector<PlanCell>> rows;
  std::vector<std::string> notes;  // lines below: what the figures assume
};

// A section without rows is its title and notes.
std::string PlanText(const std::vector<PlanSection>& sections);
// {key: [{key of a column: value}]}: bytes, seconds and counts, not rounded.
nlohmann::ordered_json PlanJson(const std::vector<PlanSection>& sections);

// Bytes in the unit that suits, as the lectures round: "31.4 GB", "350 GB"; all digits, to twelve:
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
