#ifndef TUG_CLI_PLAN_PRESETS_H_
#define TUG_CLI_PLAN_PRESETS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tug {

// Figures that the lectures print, by the first cell of the row beside which they stand.
using LectureFigures = std::map<std::string, std::string>;

// A model of the lectures: options of `tug plan` with their values, and the lectures' figures.
struct PlanPreset {
  std::string name;
  std::string description;
  std::vector<std::pair<std::string, std::string>> arguments;
  LectureFigures lectures;
};

const std::vector<PlanPreset>& PlanPresets();

}  // namespace tug

#endif  // TUG_CLI_PLAN_PRESETS_H_
