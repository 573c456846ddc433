#ifndef TUG_CLI_BENCH_COMMAND_H_
#define TUG_CLI_BENCH_COMMAND_H_

#include "cli/commands.h"

namespace tug {

// What AddBenchCommand puts under `tug bench`, one file each.
void AddBenchPushPull(CLI::App& bench, Command& chosen);
void AddBenchCollectives(CLI::App& bench, Command& chosen);
void AddBenchServer(CLI::App& bench, Command& chosen);
void AddBenchKernels(CLI::App& bench, Command& chosen);
void AddBenchCodecs(CLI::App& bench, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_BENCH_COMMAND_H_
