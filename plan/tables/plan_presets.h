// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_TABLES_PLAN_PRESETS_H_
#define TUG_PLAN_TABLES_PLAN_PRESETS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tug {

// Figures printed in the lectures, by the first cell of the row they are compared with.
using LectureFigures = std::map<std::string, std::string>;

// A model of the lectures: values of `tug plan` options, and the lectures' figures.
struct PlanPreset {
  std::string name;
  std::string description;
  std::vector<std::pair<std::string, std::string>> arguments;
  LectureFigures lectures;
};

const std::vector<PlanPreset>& PlanPresets();

}  // namespace tug

#endif  // TUG_PLAN_TABLES_PLAN_PRESETS_H_
