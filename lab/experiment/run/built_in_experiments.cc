// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/run/built_in_experiments.h"

#include "lab/experiment/run/built_in_experiment_texts.h"

namespace tug {

std::optional<std::string> BuiltInExperiment(const std::string& name) {
  for (const BuiltInExperimentText& one : kBuiltInExperiments) {
    if (name == one.name) return one.text;
  }
  return std::nullopt;
}

std::vector<std::string> BuiltInExperimentNames() {
  std::vector<std::string> names;
  for (const BuiltInExperimentText& one : kBuiltInExperiments) names.emplace_back(one.name);
  return names;
}

}  // namespace tug
