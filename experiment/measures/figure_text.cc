// SPDX-License-Identifier: Apache-2.0
#include "experiment/measures/figure_text.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace tug {

std::string NumberText(const std::optional<double>& value, int digits) {
  if (!value.has_value() || !std::isfinite(*value)) return kNoFigure;
  return absl::StrFormat("%.*f", digits, *value);
}

std::string PercentText(double part) { return absl::StrFormat("%.1f%%", part * 100); }

nlohmann::ordered_json OrNull(const std::optional<double>& value) {
  if (!value.has_value() || !std::isfinite(*value)) return nullptr;
  return *value;
}

}  // namespace tug
