// SPDX-License-Identifier: Apache-2.0
#include "bench/bench_command.h"

#include "CLI/CLI.hpp"

namespace tug {

void AddBenchCommand(CLI::App& app, Command& chosen) {
  CLI::App* bench = app.add_subcommand(
      "bench", "Measures a part of Tugboat and the raw limits of this machine, in one run");
  bench->require_subcommand(1);
  AddBenchPushPull(*bench, chosen);
  AddBenchCollectives(*bench, chosen);
  AddBenchServer(*bench, chosen);
  AddBenchKernels(*bench, chosen);
  AddBenchCodecs(*bench, chosen);
}

}  // namespace tug
