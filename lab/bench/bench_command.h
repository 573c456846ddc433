// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_BENCH_BENCH_COMMAND_H_
#define TUG_LAB_BENCH_BENCH_COMMAND_H_

#include "process/commands.h"

namespace tug {

// Subcommands of `tug bench`, one file each.
void AddBenchPushPull(CLI::App& bench, Command& chosen);
void AddBenchCollectives(CLI::App& bench, Command& chosen);
void AddBenchServer(CLI::App& bench, Command& chosen);
void AddBenchKernels(CLI::App& bench, Command& chosen);
void AddBenchCodecs(CLI::App& bench, Command& chosen);

}  // namespace tug

#endif  // TUG_LAB_BENCH_BENCH_COMMAND_H_
