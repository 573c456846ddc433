// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_HOSTS_HOSTS_FILE_H_
#define TUG_LAUNCH_HOSTS_HOSTS_FILE_H_

// Hosts of `tug launch`, and the assignment of a job's processes to them. Pure, except
// ReadHostsFile.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tug {

inline constexpr uint32_t kMaxSlots = 1024;  // per host: bounds the cost of a typo

// A line of a hosts file.
struct LaunchHost {
  std::string name;         // for messages, unique: "host3", or "host3:2222" if necessary
  std::string destination;  // "host3" or "user@host3", an argument of ssh
  int port = 0;             // of sshd; 0: ssh's default
  uint32_t slots = 1;       // processes it takes before the next host's turn
  bool coordinates = false;
  bool serves = false;
  bool works = false;                   // none of the three: any role
  std::vector<std::string> interfaces;  // by which others reach it; empty: chosen by route
  int line = 0;

  bool takes_any() const { return !coordinates && !serves && !works; }
};

// Lines `[user@]host[:port] [slots=N] [role=coordinator|server|worker[,...]]
// [interface=NAME[,NAME]]`; # begins a comment. `source` names the file in errors. Errors:
// INVALID_ARGUMENT, one line, "source:line: what; remedy".
absl::StatusOr<std::vector<LaunchHost>> ParseHostsFile(const std::string& text,
                                                       const std::string& source);

// Reads a file of at most 1 MiB. Errors: as FileError; those of ParseHostsFile.
absl::StatusOr<std::vector<LaunchHost>> ReadHostsFile(const std::string& path);

struct WantedProcesses {
  uint32_t servers = 0;  // including spare ones
  uint32_t workers = 0;
  bool servers_beside_workers = false;
};

// Index of each process's host.
struct DealtProcesses {
  size_t coordinator = 0;
  std::vector<size_t> servers;
  std::vector<size_t> workers;
};

// Assigns processes to hosts. The coordinator gets the first host with its role, else the first
// with any role. Servers, then workers, go in order to hosts with their role or any role, `slots`
// per host, starting over after the last; workers continue where servers end, unless their hosts
// differ. With servers_beside_workers each worker's host also gets a server, as far as there are
// servers. Errors: FAILED_PRECONDITION if no host takes a role.
absl::StatusOr<DealtProcesses> DealProcesses(const std::vector<LaunchHost>& hosts,
                                             const WantedProcesses& wanted);

}  // namespace tug

#endif  // TUG_LAUNCH_HOSTS_HOSTS_FILE_H_
