// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_COMMANDS_SIMULATE_FAULTS_H_
#define TUG_LAB_COMMANDS_SIMULATE_FAULTS_H_

#include "process/commands.h"

namespace tug {

// tug simulate faults: complete jobs in virtual time, with faults drawn from seeds.
void AddSimulateFaults(CLI::App& simulate, Command& chosen);

}  // namespace tug

#endif  // TUG_LAB_COMMANDS_SIMULATE_FAULTS_H_
