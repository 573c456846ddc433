#ifndef TUG_EXPERIMENT_FIGURE_TEXT_H_
#define TUG_EXPERIMENT_FIGURE_TEXT_H_

// Figures in tables and JSON, where some may be missing or not finite. Pure, thread-safe.

#include <optional>
#include <string>

#include "nlohmann/json_fwd.hpp"

namespace tug {

// In place of a figure that there is not.
inline constexpr char kNoFigure[] = "-";

// With so many digits after the point; kNoFigure: none, or not finite.
std::string NumberText(const std::optional<double>& value, int digits);
// 0.1234: "12.3%".
std::string PercentText(double part);
// null: none, or not finite.
nlohmann::ordered_json OrNull(const std::optional<double>& value);

}  // namespace tug

#endif  // TUG_EXPERIMENT_FIGURE_TEXT_H_
