// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_HOSTS_SSH_ARGUMENTS_H_
#define TUG_LAUNCH_HOSTS_SSH_ARGUMENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "launch/hosts/ssh_hosts.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

inline constexpr char kDefaultSsh[] = "ssh";

// Options for reaching the hosts of a hosts file and the program to run there.
struct SshArguments {
  std::string ssh = kDefaultSsh;
  std::string program;
  std::string bundle;

  // --ssh COMMAND --program PATH --bundle FILE
  void AddTo(CLI::App& command);
  // As command-line words; omits defaults.
  std::vector<std::string> Words() const;
  // `silence`: see SshOptions. Errors: INVALID_ARGUMENT: --ssh is empty.
  absl::StatusOr<SshOptions> Options(absl::Duration silence) const;
};

}  // namespace tug

#endif  // TUG_LAUNCH_HOSTS_SSH_ARGUMENTS_H_
