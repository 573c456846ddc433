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

// The first address of the first of `interfaces` that has one. Errors: NOT_FOUND, the same.
absl::StatusOr<std::string> AddressOfInterface(const std::vector<std::string>& interfaces);

// The IPv4 address of a host that is named by one, or by a name, which is looked up. Errors:
// UNAVAILABLE, naming the host.
absl::StatusOr<std::string> Ipv4AddressOf(const std::string& host);

// The address of this host from which packets to `host` leave, which may be a name; and of it only
// those of `interfaces`, as AddressToward. Errors: those of both.
absl::StatusOr<std::string> AddressTowardHost(const std::string& host,
                                              const std::vector<std::string>& interfaces = {});

// Says, with the remedy, that nodes on other hosts cannot reach `whom` ("the coordinator") at
// `host`, since that is the name of a loopback address (LoopbackOfName); else empty. Looks the name
// up.
std::string LoopbackWarning(const std::string& host, const std::string& whom);

}  // namespace tug

#endif  // TUG_CLI_ROUTE_H_
