// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/ssh_arguments.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_split.h"

namespace tug {

void SshArguments::AddTo(CLI::App& command) {
  command.add_option("--ssh", ssh, "ssh program and its arguments, separated by spaces")
      ->type_name("COMMAND")
      ->capture_default_str();
  CLI::Option* option =
      command.add_option("--program", program,
                         "Path of tug on all hosts. Default: this program and its libraries, "
                         "copied to ~/.cache/tugboat of each host that lacks them");
  option->type_name("PATH");
  command
      .add_option("--bundle", bundle,
                  "Archive made by deploy/bundle to copy instead of this program, for hosts that "
                  "cannot run it")
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
  if (options.ssh.empty())
    return absl::InvalidArgumentError("--ssh is empty: name the ssh program");
  return options;
}

}  // namespace tug
