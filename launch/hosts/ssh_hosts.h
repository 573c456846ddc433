// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_HOSTS_SSH_HOSTS_H_
#define TUG_LAUNCH_HOSTS_SSH_HOSTS_H_

// Hosts reached by ssh: the command line, and preparation of a host before a job starts.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/shell_word.h"
#include "launch/hosts/hosts_file.h"

namespace tug {

struct SshOptions {
  std::vector<std::string> ssh = {"ssh"};  // may include its first arguments
  std::string program;     // installed on all hosts; empty: finds or copies a bundle
  std::string bundle;      // archive made by deploy/bundle; empty: this program
  absl::Duration silence;  // after which a host counts as lost
};

// A host that can run `tug`.
struct ReadyHost {
  std::string program;  // path on the host
  std::string address;  // by which we reached the host
};

// argv that runs a line of the user's shell (words quoted by Quoted) on a host. Never asks for a
// password.
std::vector<std::string> SshCommand(const SshOptions& options, const LaunchHost& host,
                                    const std::string& line);

// Connects to all `hosts` concurrently. Finds this build's program in a folder of the user's cache
// named by its hash, or copies it there atomically, so that concurrent launches do not interfere.
// `folder`: for temporary files. Errors, one line that names the host: UNAVAILABLE (not reached),
// FAILED_PRECONDITION (the program does not run there, or has another version); CANCELLED.
// REQUIRES: the process has one thread.
absl::StatusOr<std::vector<ReadyHost>> PrepareHosts(const std::vector<LaunchHost>& hosts,
                                                    const SshOptions& options,
                                                    const std::string& folder);

// PrepareHosts that continues when a host fails. Per host: the host, or its error. Errors:
// CANCELLED; those of our own program and bundle.
absl::StatusOr<std::vector<absl::StatusOr<ReadyHost>>> PrepareEachHost(
    const std::vector<LaunchHost>& hosts, const SshOptions& options, const std::string& folder);

}  // namespace tug

#endif  // TUG_LAUNCH_HOSTS_SSH_HOSTS_H_
