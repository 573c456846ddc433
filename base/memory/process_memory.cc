// SPDX-License-Identifier: Apache-2.0
#include "base/memory/process_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace tug {

uint64_t PrivateMemoryBytes() {
  std::ifstream status("/proc/self/status");
  uint64_t kib = 0;
  // Line format: "RssAnon:     1234 kB".
  for (std::string word; status >> word;) {
    uint64_t value = 0;
    if ((word == "RssAnon:" || word == "RssFile:") && status >> value) kib += value;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return kib * 1024;
}

uint64_t PeakMemory::Sample(uint64_t shared_bytes) {
  peak_bytes_ = std::max(peak_bytes_, PrivateMemoryBytes() + shared_bytes);
  return peak_bytes_;
}

}  // namespace tug
