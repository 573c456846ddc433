#ifndef TUG_CLI_NETWORK_HOST_H_
#define TUG_CLI_NETWORK_HOST_H_

#include <string>

#include "absl/status/status.h"

namespace tug {

// A host of deploy/testbed.
struct NetworkHost {
  std::string name;     // of its network namespace under /run/netns; empty: where we are
  std::string address;  // by which the other hosts reach it
};

// Moves the calling thread, and what it starts from now on, into the host of a name. Errors:
// FAILED_PRECONDITION, naming the host and the remedy.
absl::Status EnterNetworkHost(const std::string& name);

}  // namespace tug

#endif  // TUG_CLI_NETWORK_HOST_H_
