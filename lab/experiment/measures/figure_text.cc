// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/measures/figure_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace tug {

std::string NumberText(const std::optional<double>& value, int digits) {
  if (!value.has_value() || !std::isfinite(*value)) return kNoFigure;
  return absl::StrFormat("%.*f", digits, *value);
}

std::string PercentText(double part) { return absl::StrFormat("%.1f%%", part * 100); }

std::vector<std::vector<std::string>> WithoutEmptyColumns(
    const std::vector<std::vector<std::string>>& table) {
  std::vector<std::vector<std::string>> kept(table.size());
  for (size_t column = 0; !table.empty() && column < table[0].size(); ++column) {
    const bool is_empty =
        table.size() > 1 && std::all_of(table.begin() + 1, table.end(),
                                        [&](const auto& row) { return row[column] == kNoFigure; });
    for (size_t i = 0; i < table.size() && !is_empty; ++i) kept[i].push_back(table[i][column]);
  }
  return kept;
}

nlohmann::ordered_json OrNull(const std::optional<double>& value) {
  if (!value.has_value() || !std::isfinite(*value)) return nullptr;
  return *value;
}

}  // namespace tug
