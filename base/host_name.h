#ifndef TUG_BASE_HOST_NAME_H_
#define TUG_BASE_HOST_NAME_H_

#include <sys/socket.h>

#include <string>

namespace tug {

// This host's own; "unknown" where it cannot be asked. Thread-safe.
std::string HostName();

// "::1" of "[::1]", as an address of IPv6 stands before a port; anything else as it is. Pure.
std::string WithoutBrackets(const std::string& host);

// The loopback address that a host's name leads to on this host, as Debian's /etc/hosts has
// 127.0.1.1 for the host's own; also of that address. Empty: it leads elsewhere or nowhere, or is
// meant to be loopback ("localhost", "127.0.0.1"). Looks the name up. Thread-safe.
std::string LoopbackOfName(const std::string& host);

// Of a socket's address the host in numbers, "10.0.0.7" also where it came as an IPv6 one; "an
// unknown address" of no Internet protocol. Thread-safe.
std::string NumericAddress(const sockaddr_storage& address, socklen_t bytes);

}  // namespace tug

#endif  // TUG_BASE_HOST_NAME_H_
