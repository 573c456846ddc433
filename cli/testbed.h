#ifndef TUG_CLI_TESTBED_H_
#define TUG_CLI_TESTBED_H_

// Hosts on this machine for an experiment: network namespaces behind one bridge, every link shaped.
// The script deploy/testbed makes them, which is built in; what they are made of stands there.
//
// They are gone when the Testbed is, however its process ends: the script waits for the end of a
// pipe that only this process holds, and removes them then.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "cli/network_host.h"

namespace tug {

// Over a host's link since it was made, as the network interface counts: headers are among them.
struct LinkBytes {
  uint64_t sent = 0;
  uint64_t received = 0;
};

// Not thread-safe. REQUIRES: the process has one thread.
class Testbed {
 public:
  // `link`: a rate as tc writes it, "200mbit". Returns when all hosts are there. Errors:
  // FAILED_PRECONDITION, one line: not root, a testbed is there already (it is left alone), what
  // the script said.
  static absl::StatusOr<std::unique_ptr<Testbed>> Up(uint32_t hosts, const std::string& link);
  // Removes the hosts, and waits for that. What still runs in them is killed. Warns on stderr if
  // some could not be removed.
  ~Testbed();
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  const std::vector<NetworkHost>& hosts() const { return hosts_; }
  // Of each of them, in order. Errors: those of reading /sys.
  absl::StatusOr<std::vector<LinkBytes>> ReadLinkBytes() const;

 private:
  Testbed() = default;
  // Until all hosts are told, or the script has ended.
  absl::Status ReadHosts(int fd);

  pid_t pid_ = -1;
  FileDescriptor input_;  // of the script
  std::vector<NetworkHost> hosts_;
};

}  // namespace tug

#endif  // TUG_CLI_TESTBED_H_
