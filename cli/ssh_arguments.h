#ifndef TUG_CLI_SSH_ARGUMENTS_H_
#define TUG_CLI_SSH_ARGUMENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/ssh_hosts.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

inline constexpr char kDefaultSsh[] = "ssh";

// How hosts of a hosts file are reached, and what is run there.
struct SshArguments {
  std::string ssh = kDefaultSsh;
  std::string program;
  std::string bundle;

  // --ssh COMMAND --program PATH --bundle FILE
  void AddTo(CLI::App& command);
  // As words of a command, those that are not as by default.
  std::vector<std::string> Words() const;
  // `silence`: SshOptions'. Errors: INVALID_ARGUMENT: --ssh names no program.
  absl::StatusOr<SshOptions> Options(absl::Duration silence) const;
};

}  // namespace tug

#endif  // TUG_CLI_SSH_ARGUMENTS_H_
