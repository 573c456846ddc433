#ifndef TUG_CLI_PLAN_PRESETS_H_
#define TUG_CLI_PLAN_PRESETS_H_

#include <map>
#include <string>
#include <vector>

#include "cli/plan_options.h"

namespace tug {

// A model of the lectures, as values of the options of `tug plan`, and the figures that the
// lectures print of it, to stand beside those that are worked out.
struct PlanPreset {
  std::string name;
  std::string description;
  PlanOptions options;
  std::map<std::string, std::string> lectures;  // by key of a row (plan_sections.cc), as printed
};

std::vector<PlanPreset> PlanPresets();

}  // namespace tug

#endif  // TUG_CLI_PLAN_PRESETS_H_
