#ifndef TUG_CLI_DOCTOR_COMMAND_H_
#define TUG_CLI_DOCTOR_COMMAND_H_

#include "cli/commands.h"

namespace tug {

// `tug doctor`, and `tug probe`, its end on a host.
void AddDoctorCommands(CLI::App& app, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_DOCTOR_COMMAND_H_
