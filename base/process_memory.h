#ifndef TUG_BASE_PROCESS_MEMORY_H_
#define TUG_BASE_PROCESS_MEMORY_H_

#include <cstdint>

namespace tug {

// Largest resident set of this process so far, bytes (getrusage). Thread-safe.
uint64_t PeakMemoryBytes();

}  // namespace tug

#endif  // TUG_BASE_PROCESS_MEMORY_H_
