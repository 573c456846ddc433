// SPDX-License-Identifier: Apache-2.0
#include "cli/tug_commands.h"

#include "cli/doctor_command.h"

namespace tug {

void AddTugCommands(CLI::App& app, Command& chosen) {
  AddNewCommand(app, chosen);
  AddTrainCommand(app, chosen);
  AddLaunchCommands(app, chosen);
  AddStatusCommand(app, chosen);
  AddStopCommand(app, chosen);
  AddDrainCommand(app, chosen);
  AddKeysCommand(app, chosen);
  AddSampleCommand(app, chosen);
  AddEvalCommand(app, chosen);
  AddExportCommand(app, chosen);
  AddCoordinatorCommand(app, chosen);
  AddServerCommand(app, chosen);
  AddWorkerCommand(app, chosen);
  AddExplainCommand(app, chosen);
  AddPlanCommand(app, chosen);
  AddDoctorCommands(app, chosen);
}

}  // namespace tug
