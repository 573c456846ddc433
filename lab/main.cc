// SPDX-License-Identifier: Apache-2.0
// tug-lab: tug with the commands of the laboratory. tug runs it when one of them is called.

#include "CLI/CLI.hpp"
#include "cli/program.h"
#include "cli/tug_commands.h"
#include "lab/experiment/plan/experiment_help.h"
#include "lab/lab_commands.h"

int main(int argc, char** argv) {
  return tug::RunProgram(argc, argv, [](CLI::App& app, tug::Command& chosen) {
    tug::AddTugCommands(app, chosen);
    tug::AddReplayCommand(app, chosen);
    tug::AddExperimentCommand(app, chosen);
    tug::AddBenchCommand(app, chosen);
    tug::AddBenchTraining(app, chosen);
    tug::AddSimulateCommand(app, chosen);
    tug::AddHelpCommand(app, chosen, tug::ExperimentHelp);
  });
}
