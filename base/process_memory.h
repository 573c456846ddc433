#ifndef TUG_BASE_PROCESS_MEMORY_H_
#define TUG_BASE_PROCESS_MEMORY_H_

#include <cstdint>

namespace tug {

// Resident private memory of this process now, bytes: RssAnon and RssFile of /proc/self/status; 0
// where the kernel does not say. Shared memory is left out: a page of it is resident in every
// process that has read it, so it is counted by the one that has filled it
// (SharedArena::touched_bytes). Thread-safe.
uint64_t PrivateMemoryBytes();

// The most memory that this process has held, as sampled: what comes and goes between two samples
// is not seen. Not thread-safe.
class PeakMemory {
 public:
  // Takes a sample, private memory and `shared_bytes` of the process's own that others may read
  // (Transport::SharedBytes); returns the largest so far.
  uint64_t Sample(uint64_t shared_bytes);

 private:
  uint64_t peak_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_BASE_PROCESS_MEMORY_H_
