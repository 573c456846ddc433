#ifndef TUG_CLI_BENCH_SERVER_H_
#define TUG_CLI_BENCH_SERVER_H_

#include "cli/commands.h"

namespace tug {

// Adds `server` to `tug bench`.
void AddBenchServer(CLI::App& bench, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_BENCH_SERVER_H_
