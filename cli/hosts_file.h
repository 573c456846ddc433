#ifndef TUG_CLI_HOSTS_FILE_H_
#define TUG_CLI_HOSTS_FILE_H_

// The hosts of `tug launch`, and which process of a job runs on which. Pure, but for
// ReadHostsFile.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tug {

inline constexpr uint32_t kMostSlots = 1024;  // of a host: bounds what a mistake can cost

// A line of a hosts file.
struct LaunchHost {
  std::string name;         // for people, and unique: "host3", or "host3:2222" where that is needed
  std::string destination;  // "host3" or "user@host3", as ssh takes it
  int port = 0;             // of sshd; 0: as ssh has it
  uint32_t slots = 1;       // processes that it takes before it is the next host's turn
  bool coordinates = false;
  bool serves = false;
  bool works = false;                   // none of the three: it takes any role
  std::vector<std::string> interfaces;  // by which others reach it; empty: the route tells
  int line = 0;

  bool takes_any() const { return !coordinates && !serves && !works; }
};

// Lines `[user@]host[:port] [slots=N] [role=coordinator|server|worker[,...]]
// [interface=NAME[,NAME]]`; # begins a comment.
// `source` names the file in errors. Errors: INVALID_ARGUMENT, one line, "source:line: what;
// remedy".
absl::StatusOr<std::vector<LaunchHost>> ParseHostsFile(const std::string& text,
                                                       const std::string& source);

// Of a file of at most 1 MiB. Errors: as FileError; those of ParseHostsFile.
absl::StatusOr<std::vector<LaunchHost>> ReadHostsFile(const std::string& path);

struct WantedProcesses {
  uint32_t servers = 0;  // spare ones too
  uint32_t workers = 0;
  bool servers_beside_workers = false;
};

// By process: the number of its host.
struct DealtProcesses {
  size_t coordinator = 0;
  std::vector<size_t> servers;
  std::vector<size_t> workers;
};

// The coordinator is on the first host that has its role, or else the first that takes any.
// Servers, then workers, are dealt in order to hosts that have their role or take any, `slots` to a
// host, and again from the first one when there are no more; with servers_beside_workers as many
// servers as there are workers are beside them. Errors: FAILED_PRECONDITION if a role has no host.
absl::StatusOr<DealtProcesses> DealProcesses(const std::vector<LaunchHost>& hosts,
                                             const WantedProcesses& wanted);

}  // namespace tug

#endif  // TUG_CLI_HOSTS_FILE_H_
