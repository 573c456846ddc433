#include "cli/exposure.h"

#include <cstdio>

namespace tug {

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host == "lo" ||
         host.rfind("127.", 0) == 0;
}

void WarnIfExposed(const std::string& host) {
  if (IsLoopback(host)) return;
  std::fprintf(
      stderr,
      "tug: warning: listening on %s: traffic is neither encrypted nor authenticated, so let only "
      "trusted hosts reach it\n",
      host.c_str());
}

}  // namespace tug
