// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/bench_command.h"

#include "CLI/CLI.hpp"
#include "cli/lab_program.h"
#include "lab/lab_commands.h"

namespace tug {

void AddBenchCommand(CLI::App& app, Command& chosen) {
  CLI::App* bench = app.add_subcommand(kBenchCommand.name, kBenchCommand.summary);
  bench->require_subcommand(1);
  AddBenchPushPull(*bench, chosen);
  AddBenchCollectives(*bench, chosen);
  AddBenchServer(*bench, chosen);
  AddBenchKernels(*bench, chosen);
  AddBenchCodecs(*bench, chosen);
}

}  // namespace tug
