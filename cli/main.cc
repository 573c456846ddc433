// SPDX-License-Identifier: Apache-2.0
// tug: one subcommand per task. Those of the laboratory are run by tug-lab.

#include "CLI/CLI.hpp"
#include "cli/lab_program.h"
#include "cli/program.h"
#include "cli/tug_commands.h"

int main(int argc, char** argv) {
  tug::ExecLabProgram(argc, argv);
  return tug::RunProgram(argc, argv, [](CLI::App& app, tug::Command& chosen) {
    tug::AddTugCommands(app, chosen);
    tug::AddMissingLabCommands(app, chosen);
    tug::AddHelpCommand(app, chosen, nullptr);
  });
}
