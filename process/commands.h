// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_COMMANDS_H_
#define TUG_PROCESS_COMMANDS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// Action of the chosen command. Its error is printed as one line; an error with an empty message
// has already been printed.
using Command = std::function<absl::Status()>;

// Each adds a subcommand, which stores its action in `chosen` (which outlives `app`).
void AddNewCommand(CLI::App& app, Command& chosen);
void AddTrainCommand(CLI::App& app, Command& chosen);
void AddLaunchCommands(CLI::App& app, Command& chosen);  // and the two ends of its connections
void AddCoordinatorCommand(CLI::App& app, Command& chosen);
void AddServerCommand(CLI::App& app, Command& chosen);
void AddWorkerCommand(CLI::App& app, Command& chosen);
void AddStatusCommand(CLI::App& app, Command& chosen);
void AddStopCommand(CLI::App& app, Command& chosen);
void AddDrainCommand(CLI::App& app, Command& chosen);
void AddKeysCommand(CLI::App& app, Command& chosen);
void AddSampleCommand(CLI::App& app, Command& chosen);
void AddExportCommand(CLI::App& app, Command& chosen);
void AddEvalCommand(CLI::App& app, Command& chosen);
void AddExplainCommand(CLI::App& app, Command& chosen);
void AddPlanCommand(CLI::App& app, Command& chosen);
// `experiment_help`: the text of `tug help experiment`; null in a program without experiments.
void AddHelpCommand(CLI::App& app, Command& chosen, std::string (*experiment_help)());

}  // namespace tug

#endif  // TUG_PROCESS_COMMANDS_H_
