// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_NETWORK_HOST_H_
#define TUG_PROCESS_NETWORK_HOST_H_

#include <string>

#include "absl/status/status.h"

namespace tug {

// A host: a network namespace of deploy/testbed, or this machine.
struct NetworkHost {
  std::string name;     // of its network namespace under /run/netns; empty: the current one
  std::string address;  // by which the other hosts reach it
};

// Moves the calling thread, and processes it starts later, into the named host. Errors:
// FAILED_PRECONDITION, naming the host and the remedy.
absl::Status EnterNetworkHost(const std::string& name);

}  // namespace tug

#endif  // TUG_PROCESS_NETWORK_HOST_H_
