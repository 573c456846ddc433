// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_LAB_COMMANDS_H_
#define TUG_LAB_LAB_COMMANDS_H_

#include "process/commands.h"

namespace tug {

// The commands that only tug-lab has. Each adds a subcommand, as those of process/commands.h do.
void AddReplayCommand(CLI::App& app, Command& chosen);
void AddExperimentCommand(CLI::App& app, Command& chosen);
void AddBenchCommand(CLI::App& app, Command& chosen);
void AddBenchTraining(CLI::App& app, Command& chosen);  // under `bench`
void AddSimulateCommand(CLI::App& app, Command& chosen);

}  // namespace tug

#endif  // TUG_LAB_LAB_COMMANDS_H_
