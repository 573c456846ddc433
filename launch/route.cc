// SPDX-License-Identifier: Apache-2.0
#include "launch/route.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "base/net/host_name.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr char kAnyPort[] = "9";  // discard; nothing is sent to it

std::string TextOf(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST];
  if (getnameinfo(address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

bool IsLoopbackAddress(const std::string& address) { return absl::StartsWith(address, "127."); }

absl::StatusOr<std::string> LocalAddressToward(const std::string& peer) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(peer.c_str(), kAnyPort, &hints, &found) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("'", peer, "' is not an IPv4 address"));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  const FileDescriptor fd(socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage ours{};
  socklen_t length = sizeof(ours);
  if (!fd.valid() || connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&ours), &length) != 0) {
    return absl::NotFoundError(
        absl::StrCat("this host has no route to ", peer, ": ", std::strerror(errno)));
  }
  return TextOf(reinterpret_cast<const sockaddr*>(&ours), length);
}

// IPv4 addresses of these interfaces, in their order.
absl::StatusOr<std::vector<std::string>> AddressesOf(const std::vector<std::string>& interfaces) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) {
    return absl::InternalError(absl::StrCat("cannot read interfaces: ", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(all, freeifaddrs);
  std::vector<std::string> addresses;
  std::set<std::string> there;
  for (const std::string& name : interfaces) {
    for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
      there.insert(entry->ifa_name);
      if (entry->ifa_addr == nullptr || name != entry->ifa_name) continue;
      if (entry->ifa_addr->sa_family != AF_INET) continue;
      addresses.push_back(TextOf(entry->ifa_addr, sizeof(sockaddr_in)));
    }
  }
  if (!addresses.empty()) return addresses;
  return absl::NotFoundError(absl::StrCat(
      "interface ", absl::StrJoin(interfaces, " or "),
      " does not exist or has no IPv4 address (available: ", absl::StrJoin(there, ", "),
      "); correct --interface, or interface= in the hosts file"));
}

}  // namespace

absl::StatusOr<std::string> AddressToward(const std::vector<std::string>& peers,
                                          const std::vector<std::string>& interfaces) {
  if (peers.empty()) return absl::InvalidArgumentError("no peer address given");
  const auto far = std::find_if_not(peers.begin(), peers.end(), IsLoopbackAddress);
  ASSIGN_OR_RETURN(const std::string routed,
                   LocalAddressToward(far == peers.end() ? peers.front() : *far));
  if (interfaces.empty()) return routed;
  ASSIGN_OR_RETURN(const std::vector<std::string> allowed, AddressesOf(interfaces));
  const bool may = std::find(allowed.begin(), allowed.end(), routed) != allowed.end();
  return may ? routed : allowed.front();
}

absl::StatusOr<std::string> AddressOfInterface(const std::vector<std::string>& interfaces) {
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses, AddressesOf(interfaces));
  return addresses.front();
}

absl::StatusOr<std::string> Ipv4AddressOf(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot find an IPv4 address of '", host, "': ", gai_strerror(error),
                     "; use the address of the host instead of its name"));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  return TextOf(found->ai_addr, found->ai_addrlen);
}

absl::StatusOr<std::string> AddressTowardHost(const std::string& host,
                                              const std::vector<std::string>& interfaces) {
  ASSIGN_OR_RETURN(const std::string peer, Ipv4AddressOf(host));
  return AddressToward({peer}, interfaces);
}

std::string LoopbackWarning(const std::string& host, const std::string& whom) {
  const std::string loopback = LoopbackOfName(host);
  if (loopback.empty()) return "";
  return absl::StrCat(
      host, " resolves to ", loopback, " on this host, so nodes on other hosts cannot reach ", whom,
      ": pass the address of an interface with --listen, or its name with --interface");
}

}  // namespace tug
