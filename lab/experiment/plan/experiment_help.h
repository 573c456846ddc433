// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_PLAN_EXPERIMENT_HELP_H_
#define TUG_LAB_EXPERIMENT_PLAN_EXPERIMENT_HELP_H_

#include <string>

namespace tug {

// Every field of an experiment file with its comment, and the measures.
std::string ExperimentHelp();

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_PLAN_EXPERIMENT_HELP_H_
