// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "process/commands.h"
#include "security/key_file.h"

namespace tug {
namespace {

struct KeysCommand {
  std::string file;
  std::string mode = "token";
  bool show = false;
};

void Print(const KeysCommand& command, const JobKeys& keys, const char* what) {
  std::printf("%s %s: mode %s, fingerprint %s\n", what, command.file.c_str(),
              ModeName(keys.mode).c_str(), KeysFingerprint(keys).c_str());
}

absl::Status MakeOrShow(const KeysCommand& command) {
  if (command.show) {
    ASSIGN_OR_RETURN(const JobKeys keys, ReadKeyFile(command.file));
    Print(command, keys, "keys");
    return absl::OkStatus();
  }
  const bool curve = command.mode == "curve";
  ASSIGN_OR_RETURN(const JobKeys keys,
                   MakeJobKeys(curve ? SecurityConfig::CURVE : SecurityConfig::TOKEN));
  RETURN_IF_ERROR(WriteNewKeyFile(command.file, keys));
  Print(command, keys, "made");
  std::printf(
      "copy it to the hosts of the job, readable only by you (scp -p), and start each process with "
      "--keys %s or TUG_KEYS=%s\n",
      command.file.c_str(), command.file.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddKeysCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<KeysCommand>();
  CLI::App* command = app.add_subcommand(
      "keys", "Creates the key file of a job: only processes that have it can join");
  command->add_option("FILE", arguments->file, "File to create (never overwritten) or to show")
      ->type_name("FILE")
      ->required();
  CLI::Option* mode = command
                          ->add_option("--mode", arguments->mode,
                                       "token: authenticates processes, traffic is in clear text; "
                                       "curve: also encrypts traffic")
                          ->check(CLI::IsMember({"token", "curve"}))
                          ->capture_default_str();
  command
      ->add_flag("--show", arguments->show,
                 "Print mode and fingerprint of an existing file, and no secret")
      ->excludes(mode);
  command->footer(
      "The job's security.mode must match the mode of its keys. tug train and tug launch create "
      "keys for a job that needs them and has none.\n"
      "Examples:\n"
      "  tug keys job.keys --mode curve\n"
      "  tug coordinator job.textproto --set security.mode=CURVE --keys job.keys --listen "
      "10.0.0.1:7070\n"
      "  tug keys --show job.keys");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return MakeOrShow(*arguments); }; });
}

}  // namespace tug
