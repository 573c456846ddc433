// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_TUG_COMMANDS_H_
#define TUG_CLI_TUG_COMMANDS_H_

#include "process/commands.h"

namespace tug {

// The commands that launch, run, watch and explain jobs; without `help`.
void AddTugCommands(CLI::App& app, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_TUG_COMMANDS_H_
