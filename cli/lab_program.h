// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_LAB_PROGRAM_H_
#define TUG_CLI_LAB_PROGRAM_H_

// The commands of the laboratory (lab/). No node of a job needs them, so they are not in tug, but
// in tug-lab, which has all commands and is in the same folder. A user calls tug only.

#include "process/commands.h"

namespace tug {

struct LabCommand {
  const char* name;
  const char* summary;
};
inline constexpr LabCommand kReplayCommand = {
    "replay", "Recomputes a recorded asynchronous run, update by update, and compares the bits"};
inline constexpr LabCommand kExperimentCommand = {
    "experiment", "Runs a job in several configurations and compares them in a report"};
inline constexpr LabCommand kBenchCommand = {
    "bench", "Measures a part of Tugboat and the raw limits of this machine, in one run"};
inline constexpr LabCommand kSimulateCommand = {
    "simulate", "Simulates jobs in virtual time, on other machines and under faults"};

// Becomes tug-lab if the first argument is a command of the laboratory, or `help`, which describes
// them too. Returns if it is not, or if there is no tug-lab. Call it before any thread starts.
void ExecLabProgram(int argc, char** argv);

// Adds the commands of the laboratory for a tug without tug-lab; each fails and names the remedy.
void AddMissingLabCommands(CLI::App& app, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_LAB_PROGRAM_H_
