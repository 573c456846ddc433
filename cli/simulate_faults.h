// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_SIMULATE_FAULTS_H_
#define TUG_CLI_SIMULATE_FAULTS_H_

#include "process/commands.h"

namespace tug {

// tug simulate faults: complete jobs in virtual time, with faults drawn from seeds.
void AddSimulateFaults(CLI::App& simulate, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_SIMULATE_FAULTS_H_
