// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_DOCTOR_COMMAND_H_
#define TUG_CLI_DOCTOR_COMMAND_H_

#include "process/commands.h"

namespace tug {

// Adds `tug doctor`, and `tug probe`, its end on a host.
void AddDoctorCommands(CLI::App& app, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_DOCTOR_COMMAND_H_
