// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_PROGRAM_H_
#define TUG_CLI_PROGRAM_H_

#include "process/commands.h"

namespace tug {

using AddCommands = void (*)(CLI::App& app, Command& chosen);

// The main() of a program with the commands that `add` adds. Exit codes: 0 done, 1 failed, 2 wrong
// usage.
int RunProgram(int argc, char** argv, AddCommands add);

}  // namespace tug

#endif  // TUG_CLI_PROGRAM_H_
