#ifndef TUG_CLI_ROUTE_H_
#define TUG_CLI_ROUTE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

// The IPv4 address of this host from which packets to a peer leave, by the kernel's routes: the one
// by which the peer reaches us. Nothing is sent, and no name is looked up.
//
// `peers`: addresses. The first that is not of loopback decides, since a loopback address says
// nothing of the way to others; the first one where all are. `interfaces`: only addresses of these
// will do; that of the route, or else the first one. Empty: any. Errors: INVALID_ARGUMENT (no
// address), NOT_FOUND, naming the interfaces that there are, or the peer without a route.
absl::StatusOr<std::string> AddressToward(const std::vector<std::string>& peers,
                                          const std::vector<std::string>& interfaces);

// The same of one peer that may be a name, which is looked up then. Errors: NOT_FOUND.
absl::StatusOr<std::string> AddressTowardHost(const std::string& host);

}  // namespace tug

#endif  // TUG_CLI_ROUTE_H_
