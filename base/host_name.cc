#include "base/host_name.h"

#include <netdb.h>
#include <unistd.h>

#include "absl/strings/strip.h"

namespace tug {

std::string HostName() {
  char name[256] = "unknown";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string WithoutBrackets(const std::string& host) {
  const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return in_brackets ? host.substr(1, host.size() - 2) : host;
}

std::string NumericAddress(const sockaddr_storage& address, socklen_t bytes) {
  char host[NI_MAXHOST] = "an unknown address";
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), bytes, host, sizeof(host), nullptr, 0,
              NI_NUMERICHOST);
  return std::string(absl::StripPrefix(host, "::ffff:"));
}

}  // namespace tug
