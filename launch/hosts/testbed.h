// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_HOSTS_TESTBED_H_
#define TUG_LAUNCH_HOSTS_TESTBED_H_

// Emulated hosts on this machine for an experiment: network namespaces behind one bridge, with
// traffic shaping on every link. The built-in script deploy/testbed creates them and describes
// them.
//
// The hosts exist as long as the Testbed, however its process ends: the script waits for the end of
// a pipe that only this process holds, then removes them.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file.h"
#include "process/network_host.h"

namespace tug {

// Bytes over a host's link since it was created, as counted by the network interface, including
// headers.
struct LinkBytes {
  uint64_t sent = 0;
  uint64_t received = 0;
};

// Not thread-safe. REQUIRES: the process has one thread.
class Testbed {
 public:
  // `link`: a rate in tc's notation, "200mbit". Returns when all hosts exist. Errors:
  // FAILED_PRECONDITION, one line: not root, a testbed exists already (it is left alone), or the
  // script's error.
  static absl::StatusOr<std::unique_ptr<Testbed>> Up(uint32_t hosts, const std::string& link);
  // Removes the hosts and waits until they are gone; processes in them are killed. Warns on stderr
  // if some could not be removed.
  ~Testbed();
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  const std::vector<NetworkHost>& hosts() const { return hosts_; }
  // Link bytes of each host, in order. Errors: those of reading /sys.
  absl::StatusOr<std::vector<LinkBytes>> ReadLinkBytes() const;

 private:
  Testbed() = default;
  // Reads the script's output until all hosts are reported or the script has ended.
  absl::Status ReadHosts(int fd);

  pid_t pid_ = -1;
  FileDescriptor input_;  // stdin of the script
  std::vector<NetworkHost> hosts_;
};

}  // namespace tug

#endif  // TUG_LAUNCH_HOSTS_TESTBED_H_
