// SPDX-License-Identifier: Apache-2.0
#include "cli/lab_program.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"

namespace tug {
namespace {

constexpr LabCommand kLabCommands[] = {kReplayCommand, kExperimentCommand, kBenchCommand,
                                       kSimulateCommand};

// Empty if the path of this program is unknown.
std::string PathOfLab() {
  std::error_code error;
  std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : own.replace_filename("tug-lab").string();
}

constexpr char kRemedy[] = "in the sources, run deploy/build; on Debian, install tugboat-lab";

}  // namespace

void ExecLabProgram(int argc, char** argv) {
  if (argc < 2) return;
  const std::string command = argv[1];
  const bool of_lab = std::any_of(std::begin(kLabCommands), std::end(kLabCommands),
                                  [&](const LabCommand& one) { return command == one.name; });
  const std::string lab = PathOfLab();
  if (!lab.empty() && (of_lab || command == "help")) execv(lab.c_str(), argv);
}

void AddMissingLabCommands(CLI::App& app, Command& chosen) {
  for (const LabCommand& one : kLabCommands) {
    CLI::App* command = app.add_subcommand(one.name, one.summary);
    command->set_help_flag();
    command->prefix_command();  // takes any arguments
    command->footer(absl::StrCat("Needs tug-lab: ", kRemedy));
    command->callback([&chosen, name = one.name] {
      chosen = [name] {
        const std::string lab = PathOfLab();
        const char* why =
            access(lab.c_str(), X_OK) == 0 ? "it did not start" : std::strerror(errno);
        return absl::NotFoundError(absl::StrCat("tug ", name, " needs tug-lab: cannot run ", lab,
                                                ": ", why, "; ", kRemedy));
      };
    });
  }
}

}  // namespace tug
