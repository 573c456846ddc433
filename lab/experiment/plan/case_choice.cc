// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/plan/case_choice.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lab/experiment/plan/nearest_name.h"

namespace tug {
namespace {

std::vector<std::string> ValuesOf(const ExperimentPlan& plan, const PlannedCase& one) {
  std::vector<std::string> values;
  for (size_t axis = 0; axis < one.values.size(); ++axis) {
    values.push_back(
        absl::StrCat(plan.axes[axis].name, "=", plan.axes[axis].labels[one.values[axis]]));
  }
  return values;
}

std::vector<std::string> PartsOf(const std::string& text) {
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    parts.emplace_back(absl::StripAsciiWhitespace(part));
  }
  return parts;
}

bool HasAll(const std::vector<std::string>& values, const std::vector<std::string>& wanted) {
  return !wanted.empty() && std::all_of(wanted.begin(), wanted.end(), [&](const auto& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  });
}

}  // namespace

absl::StatusOr<std::vector<bool>> ChooseCases(const ExperimentPlan& plan, const std::string& text) {
  std::vector<bool> chosen(plan.cases.size(), text.empty());
  if (text.empty()) return chosen;
  std::vector<std::string> names;
  for (size_t i = 0; i < plan.cases.size(); ++i) {
    names.push_back(plan.cases[i].name);
    chosen[i] = names.back() == text;
  }
  if (std::find(chosen.begin(), chosen.end(), true) != chosen.end()) return chosen;
  const std::vector<std::string> wanted = PartsOf(text);
  for (size_t i = 0; i < plan.cases.size(); ++i) {
    const std::vector<std::string> values = ValuesOf(plan, plan.cases[i]);
    chosen[i] = HasAll(values, wanted);
    names.insert(names.end(), values.begin(), values.end());
  }
  if (std::find(chosen.begin(), chosen.end(), true) != chosen.end()) return chosen;
  return absl::InvalidArgumentError(absl::StrCat("--case ", text, ": unknown case",
                                                 DidYouMean(text, names),
                                                 "; list the cases with --dry-run"));
}

void KeepCases(const std::vector<bool>& kept, ExperimentPlan& plan) {
  size_t number = 0;
  std::erase_if(plan.cases, [&](const PlannedCase&) { return !kept[number++]; });
}

}  // namespace tug
