// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_MEMORY_PROCESS_MEMORY_H_
#define TUG_BASE_MEMORY_PROCESS_MEMORY_H_

#include <cstdint>

namespace tug {

// Resident private memory of this process, bytes: RssAnon and RssFile of /proc/self/status; 0 if
// unavailable. Excludes shared memory: its pages are resident in every process that has read them,
// so only the process that filled them counts them (SharedArena::touched_bytes). Thread-safe.
uint64_t PrivateMemoryBytes();

// Peak memory of this process among the samples; peaks between samples are missed. Not thread-safe.
class PeakMemory {
 public:
  // Takes a sample: private memory plus `shared_bytes`, memory of this process that others may read
  // (Transport::SharedBytes). Returns the largest sample so far.
  uint64_t Sample(uint64_t shared_bytes);

 private:
  uint64_t peak_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_BASE_MEMORY_PROCESS_MEMORY_H_
