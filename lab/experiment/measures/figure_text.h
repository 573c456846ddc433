// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_MEASURES_FIGURE_TEXT_H_
#define TUG_LAB_EXPERIMENT_MEASURES_FIGURE_TEXT_H_

// Figures in tables and JSON, where some may be missing or not finite. Pure, thread-safe.

#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace tug {

// Placeholder for a missing value.
inline constexpr char kNoFigure[] = "-";

// With `digits` decimals; kNoFigure if missing or not finite.
std::string NumberText(const std::optional<double>& value, int digits);
// 0.1234: "12.3%".
std::string PercentText(double part);
// A table without the columns that have kNoFigure in all rows below the heading. REQUIRES: rows of
// equal length.
std::vector<std::vector<std::string>> WithoutEmptyColumns(
    const std::vector<std::vector<std::string>>& table);
// Null if missing or not finite.
nlohmann::ordered_json OrNull(const std::optional<double>& value);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_MEASURES_FIGURE_TEXT_H_
