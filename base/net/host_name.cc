// SPDX-License-Identifier: Apache-2.0
#include "base/net/host_name.h"

#include <netdb.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace tug {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
constexpr char kOwnNameOfDebian[] = "127.0.1.1";

}  // namespace

std::string HostName() {
  char name[256] = "unknown";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string WithoutBrackets(const std::string& host) {
  const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return in_brackets ? host.substr(1, host.size() - 2) : host;
}

std::string LoopbackOfName(const std::string& host) {
  if (host == "localhost" || host == kLoopback) return "";
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return "";
  sockaddr_storage address{};
  std::memcpy(&address, found->ai_addr, found->ai_addrlen);
  const std::string numeric = NumericAddress(address, found->ai_addrlen);
  freeaddrinfo(found);
  const bool meant = numeric == host && host != kOwnNameOfDebian;
  return !meant && absl::StartsWith(numeric, "127.") ? numeric : "";
}

std::string NumericAddress(const sockaddr_storage& address, socklen_t bytes) {
  char host[NI_MAXHOST] = "an unknown address";
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), bytes, host, sizeof(host), nullptr, 0,
              NI_NUMERICHOST);
  return std::string(absl::StripPrefix(host, "::ffff:"));
}

}  // namespace tug
