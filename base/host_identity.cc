#include "base/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <fstream>
#include <string>

namespace tug {

uint64_t HostIdentity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network = {};
  const bool has_network = stat("/proc/self/ns/net", &network) == 0;
  const uint64_t parts[] = {XXH3_64bits(boot.data(), boot.size()),
                            has_network ? uint64_t{network.st_dev} : 0,
                            has_network ? uint64_t{network.st_ino} : 0, uint64_t{geteuid()}};
  const uint64_t identity = XXH3_64bits(parts, sizeof(parts));
  return identity == 0 ? 1 : identity;
}

}  // namespace tug
