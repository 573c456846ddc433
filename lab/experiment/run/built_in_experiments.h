// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RUN_BUILT_IN_EXPERIMENTS_H_
#define TUG_LAB_EXPERIMENT_RUN_BUILT_IN_EXPERIMENTS_H_

// The experiment files of deploy/experiments, built into tug. Pure, thread-safe.

#include <optional>
#include <string>
#include <vector>

namespace tug {

// Text of the file `name`.textproto. None: unknown name.
std::optional<std::string> BuiltInExperiment(const std::string& name);
std::vector<std::string> BuiltInExperimentNames();

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RUN_BUILT_IN_EXPERIMENTS_H_
