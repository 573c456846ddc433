// SPDX-License-Identifier: Apache-2.0
#include "cli/lab_program.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"

namespace tug {
namespace {

constexpr LabCommand kLabCommands[] = {kReplayCommand, kExperimentCommand, kBenchCommand,
                                       kSimulateCommand};

std::string PathOfLab() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).replace_filename("tug-lab");
}

}  // namespace

void ExecLabProgram(int argc, char** argv) {
  if (argc < 2) return;
  const std::string command = argv[1];
  const bool of_lab = std::any_of(std::begin(kLabCommands), std::end(kLabCommands),
                                  [&](const LabCommand& one) { return command == one.name; });
  if (of_lab || command == "help") execv(PathOfLab().c_str(), argv);
}

void AddMissingLabCommands(CLI::App& app, Command& chosen) {
  for (const LabCommand& one : kLabCommands) {
    CLI::App* command = app.add_subcommand(one.name, one.summary);
    command->set_help_flag();
    command->prefix_command();  // takes any arguments
    command->callback([&chosen, name = one.name] {
      chosen = [name] {
        return absl::NotFoundError(
            absl::StrCat("tug ", name, " needs tug-lab, and there is no ", PathOfLab(),
                         ": in the sources, run deploy/build; on Debian, install tugboat-lab"));
      };
    });
  }
}

}  // namespace tug
