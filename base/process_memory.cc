#include "base/process_memory.h"

#include <sys/resource.h>

namespace tug {

uint64_t PeakMemoryBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;  // Linux counts KiB
}

}  // namespace tug
