// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_NET_HOST_NAME_H_
#define TUG_BASE_NET_HOST_NAME_H_

#include <sys/socket.h>

#include <string>

namespace tug {

// Name of this host; "unknown" if it cannot be read. Thread-safe.
std::string HostName();

// Strips the brackets of an IPv6 address: "[::1]" becomes "::1"; other text is unchanged. Pure.
std::string WithoutBrackets(const std::string& host);

// Loopback address that `host` resolves to on this host although it names a host in the network:
// Debian's /etc/hosts maps the host's own name to 127.0.1.1 (that address itself counts too).
// Empty: not loopback, not resolvable, or explicitly loopback ("localhost", "127.0.0.1"). Looks the
// name up. Thread-safe.
std::string LoopbackOfName(const std::string& host);

// Numeric host of a socket address; IPv4-mapped IPv6 addresses as IPv4 ("10.0.0.7"); "an unknown
// address" if it is not an Internet address. Thread-safe.
std::string NumericAddress(const sockaddr_storage& address, socklen_t bytes);

}  // namespace tug

#endif  // TUG_BASE_NET_HOST_NAME_H_
