// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_ROUTE_H_
#define TUG_LAUNCH_ROUTE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

// The IPv4 source address of packets from this host to a peer, by the kernel's routes: the address
// by which the peer reaches us. Sends nothing and looks no name up.
//
// `peers`: addresses. The first one other than loopback decides, since a loopback address says
// nothing about the route to others; the first one if all are loopback. `interfaces`: allowed
// interfaces; if the route's address is not on one of them, returns their first address. Empty:
// any. Errors: INVALID_ARGUMENT (not an address), NOT_FOUND, naming the existing interfaces, or the
// peer without a route.
absl::StatusOr<std::string> AddressToward(const std::vector<std::string>& peers,
                                          const std::vector<std::string>& interfaces);

// First address of the first of `interfaces` that has one. Errors: NOT_FOUND, as above.
absl::StatusOr<std::string> AddressOfInterface(const std::vector<std::string>& interfaces);

// IPv4 address of a host given by address or by name, which is looked up. Errors: UNAVAILABLE,
// naming the host.
absl::StatusOr<std::string> Ipv4AddressOf(const std::string& host);

// Source address of packets from this host to `host`, an address or a name, restricted to
// `interfaces` as in AddressToward. Errors: those of Ipv4AddressOf and AddressToward.
absl::StatusOr<std::string> AddressTowardHost(const std::string& host,
                                              const std::vector<std::string>& interfaces = {});

// Warning, with the remedy, that nodes on other hosts cannot reach `whom` ("the coordinator") at
// `host`, because the name resolves to a loopback address (LoopbackOfName); else empty. Looks the
// name up.
std::string LoopbackWarning(const std::string& host, const std::string& whom);

}  // namespace tug

#endif  // TUG_LAUNCH_ROUTE_H_
