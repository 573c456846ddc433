#ifndef TUG_CLI_SSH_HOSTS_H_
#define TUG_CLI_SSH_HOSTS_H_

// Hosts that are reached by ssh: the command line, and what a host needs before a job can start.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/hosts_file.h"
#include "cli/shell_word.h"

namespace tug {

struct SshOptions {
  std::vector<std::string> ssh = {"ssh"};  // its first arguments may follow
  std::string program;     // installed on all hosts; empty: a bundle is found or copied
  std::string bundle;      // an archive of deploy/bundle; empty: this very program
  absl::Duration silence;  // of a host, that is taken for its loss
};

// A host that can run `tug`.
struct ReadyHost {
  std::string program;  // its path there
  std::string address;  // by which we reached the host
};

// argv that runs a line of the user's shell, of words as Quoted has them, on a host. Never asks for
// a password.
std::vector<std::string> SshCommand(const SshOptions& options, const LaunchHost& host,
                                    const std::string& line);

// Reaches `hosts`, all at once, finds there the program of this very build, in a folder of the
// user's cache that is named by its hash, or copies it there: whole or not at all, so that two
// launches do no harm. `folder`: for files that are needed meanwhile. Errors, one line that names
// the host: UNAVAILABLE (not reached), FAILED_PRECONDITION (the program does not run there, or is
// of another version); CANCELLED. REQUIRES: the process has one thread.
absl::StatusOr<std::vector<ReadyHost>> PrepareHosts(const std::vector<LaunchHost>& hosts,
                                                    const SshOptions& options,
                                                    const std::string& folder);

// The same, but a host that cannot be prepared hinders none of the others. By host: itself, or its
// error. Errors: CANCELLED; of our own program and bundle.
absl::StatusOr<std::vector<absl::StatusOr<ReadyHost>>> PrepareEachHost(
    const std::vector<LaunchHost>& hosts, const SshOptions& options, const std::string& folder);

}  // namespace tug

#endif  // TUG_CLI_SSH_HOSTS_H_
