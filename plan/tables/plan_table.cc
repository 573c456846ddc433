// SPDX-License-Identifier: Apache-2.0
#include "plan/tables/plan_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/charts/markdown_table.h"
#include "base/check.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

struct Unit {
  double size;
  const char* name;
};

// Largest first. Terabytes start at ten thousand gigabytes, since the lectures compare gigabytes.
constexpr Unit kDecimal[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}};
constexpr Unit kBinary[] = {
    {0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}};
constexpr Unit kTime[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
constexpr double kMinTeraCount = 10;
// Figures of a column share a unit up to this ratio of the largest to the smallest.
constexpr double kOneUnit = 1e5;

const Unit& UnitOf(double bytes, std::span<const Unit> units) {
  if (bytes >= kMinTeraCount * units[0].size) return units[0];
  for (const Unit& unit : units.subspan(1)) {
    if (bytes >= unit.size) return unit;
  }
  return units.back();
}

const Unit& TimeUnitOf(double seconds) {
  for (const Unit& unit : kTime) {
    if (seconds >= unit.size || seconds == 0) return unit;
  }
  return kTime[2];
}

// "2800" -> "2,800"; "31.4" is unchanged.
std::string WithCommas(std::string number) {
  const size_t point = std::min(number.find('.'), number.size());
  for (size_t at = point; at > 3; at -= 3) number.insert(at - 3, ",");
  return number;
}

std::string BytesIn(const Unit& unit, double bytes) {
  const std::string number = absl::StrFormat("%.1f", bytes / unit.size);
  return absl::StrCat(WithCommas(std::string(absl::StripSuffix(number, ".0"))), " ", unit.name);
}

std::string SecondsIn(const Unit& unit, double seconds) {
  const double number = seconds / unit.size;
  return absl::StrCat(number >= 1000 ? CountText(number) : absl::StrFormat("%.4g", number), " ",
                      unit.name);
}

// Smallest and largest figure of a column, excluding 0.
std::pair<double, double> RangeOf(const std::vector<PlanRow>& rows, size_t cell) {
  std::pair<double, double> range = {std::numeric_limits<double>::infinity(), 0};
  for (const PlanRow& row : rows) {
    if (!row[cell].is_number() || row[cell] == 0) continue;
    range.first = std::min(range.first, row[cell].get<double>());
    range.second = std::max(range.second, row[cell].get<double>());
  }
  return range;
}

std::string NumberText(PlanForm form, double value, const std::pair<double, double>& range) {
  const bool one_unit = range.second > 0 && range.second <= kOneUnit * range.first;
  switch (form) {
    case PlanForm::kBytes:
      return BytesIn(UnitOf(one_unit ? range.first : value, kDecimal), value);
    case PlanForm::kExactBytes:
      return ExactBytes(value);
    case PlanForm::kBinaryBytes:
      return BinaryBytes(value);
    case PlanForm::kSeconds: {
      // Four digits are still precise after "0.00".
      const double least = std::min(range.second, 1000 * range.first);
      return SecondsIn(TimeUnitOf(one_unit ? least : value), value);
    }
    case PlanForm::kPercent:
      return absl::StrFormat("%.1f%%", value * 100);
    case PlanForm::kRatio:
      return absl::StrFormat("%.4g", value);
    case PlanForm::kText:
      return value == std::floor(value) ? CountText(value) : absl::StrFormat("%.9g", value);
  }
  TUG_CHECK(false);
}

bool HasCells(const PlanColumn& column) {
  return column.form != PlanForm::kExactBytes && column.form != PlanForm::kBinaryBytes;
}

// Rows of text, below the headings.
std::vector<std::vector<std::string>> TableOf(const PlanSection& section) {
  std::vector<std::vector<std::string>> table(1 + section.rows.size());
  size_t cells = 0;
  for (const PlanColumn& column : section.columns) {
    if (HasCells(column)) ++cells;
    if (column.heading.empty()) continue;
    table[0].push_back(column.heading);
    const size_t cell = cells - 1;
    const std::pair<double, double> range = RangeOf(section.rows, cell);
    for (size_t i = 0; i < section.rows.size(); ++i) {
      const nlohmann::ordered_json& value = section.rows[i].at(cell);
      std::string& text = table[1 + i].emplace_back();
      if (value.is_boolean()) text = value.get<bool>() ? "yes" : "no";
      if (value.is_string()) text = value.get<std::string>();
      if (value.is_number()) text = NumberText(column.form, value.get<double>(), range);
    }
  }
  return table;
}

void JoinEqualRows(std::vector<std::vector<std::string>>& table) {
  std::vector<std::vector<std::string>> joined;
  for (std::vector<std::string>& row : table) {
    if (!joined.empty() && std::equal(row.begin() + 1, row.end(), joined.back().begin() + 1)) {
      absl::StrAppend(&joined.back()[0], ", ", row[0]);
    } else {
      joined.push_back(std::move(row));
    }
  }
  table = std::move(joined);
}

}  // namespace

std::string PlanText(const std::vector<PlanSection>& sections) {
  std::string text;
  for (const PlanSection& section : sections) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", section.title, "\n");
    if (!section.rows.empty()) {
      std::vector<std::vector<std::string>> table = TableOf(section);
      if (section.joins_equal_rows) JoinEqualRows(table);
      absl::StrAppend(&text, "\n", MarkdownTable(std::move(table)));
    }
    for (const std::string& note : section.notes) absl::StrAppend(&text, "  ", note, "\n");
  }
  return text;
}

nlohmann::ordered_json PlanJson(const std::vector<PlanSection>& sections) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const PlanSection& section : sections) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const PlanRow& row : section.rows) {
      nlohmann::ordered_json& object = rows.emplace_back(nlohmann::ordered_json::object());
      size_t cell = 0;
      for (const PlanColumn& column : section.columns) {
        if (HasCells(column)) object[column.key] = row.at(cell++);
      }
    }
    all[section.key] = {{"title", section.title}, {"rows", rows}, {"notes", section.notes}};
  }
  return all;
}

std::string DecimalBytes(double bytes) { return BytesIn(UnitOf(bytes, kDecimal), bytes); }

std::string ExactBytes(double bytes) {
  const Unit& unit = UnitOf(bytes, kDecimal);
  const auto count = static_cast<uint64_t>(std::llround(bytes));
  const auto size = static_cast<uint64_t>(unit.size);
  std::string text = CountText(static_cast<double>(count / size));
  if (count % size != 0) {
    // Digits after the point: as many as the unit has zeros.
    std::string digits = absl::StrCat(size + count % size).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    absl::StrAppend(&text, ".", digits);
  }
  return absl::StrCat(text, " ", unit.name);
}

std::string BinaryBytes(double bytes) {
  const Unit& unit = UnitOf(bytes, kBinary);
  return absl::StrCat(WithCommas(absl::StrFormat("%.2f", bytes / unit.size)), " ", unit.name);
}

std::string SecondsText(double seconds) { return SecondsIn(TimeUnitOf(seconds), seconds); }

std::string CountText(double count) { return WithCommas(absl::StrFormat("%.0f", count)); }

}  // namespace tug
