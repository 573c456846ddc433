// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/ssh_arguments.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_split.h"

namespace tug {

void SshArguments::AddTo(CLI::App& command) {
  command.add_option("--ssh", ssh, "The ssh program, and arguments for it, split at spaces")
      ->type_name("COMMAND")
      ->capture_default_str();
  CLI::Option* option = command.add_option(
      "--program", program,
      "Path of tug where it is installed on all hosts; without it this very program, with its "
      "libraries, is copied to hosts that do not have it in ~/.cache/tugboat");
  option->type_name("PATH");
  command
      .add_option("--bundle", bundle,
                  "Archive of deploy/bundle to copy in place of this program, for hosts that it "
                  "does not run on")
      ->type_name("FILE")
      ->excludes(option)
      ->check(CLI::ExistingFile);
}

std::vector<std::string> SshArguments::Words() const {
  std::vector<std::string> words;
  if (ssh != kDefaultSsh) words.insert(words.end(), {"--ssh", ssh});
  if (!program.empty()) words.insert(words.end(), {"--program", program});
  if (!bundle.empty()) words.insert(words.end(), {"--bundle", bundle});
  return words;
}

absl::StatusOr<SshOptions> SshArguments::Options(absl::Duration silence) const {
  SshOptions options{.program = program, .bundle = bundle, .silence = silence};
  options.ssh = absl::StrSplit(ssh, ' ', absl::SkipEmpty());
  if (options.ssh.empty()) return absl::InvalidArgumentError("--ssh names no program");
  return options;
}

}  // namespace tug
