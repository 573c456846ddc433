// SPDX-License-Identifier: Apache-2.0
#include "base/net/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <fstream>
#include <string>

namespace tug {

uint64_t HostIdentity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty()) return 0;
  struct stat network = {};
  if (stat("/proc/self/ns/net", &network) != 0) return 0;
  const uint64_t parts[] = {XXH3_64bits(boot.data(), boot.size()), uint64_t{network.st_dev},
                            uint64_t{network.st_ino}, uint64_t{geteuid()}};
  const uint64_t identity = XXH3_64bits(parts, sizeof(parts));
  return identity == 0 ? 1 : identity;
}

}  // namespace tug
