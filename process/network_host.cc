// SPDX-License-Identifier: Apache-2.0
#include "process/network_host.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tug {

absl::Status EnterNetworkHost(const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  const int fd = open(absl::StrCat("/run/netns/", name).c_str(), O_RDONLY | O_CLOEXEC);
  const bool entered = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (entered) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot enter host '", name, "': ", std::strerror(error),
      "; run as root, after `deploy/testbed up`, which prints the names of its hosts"));
}

}  // namespace tug
