// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_MEMORY_COUNT_ALLOCATIONS_H_
#define TUG_BASE_MEMORY_COUNT_ALLOCATIONS_H_

#include <cstdint>

namespace tug {

// Calls of operator new in this process so far. For single-threaded tests: linking this file
// replaces operator new and delete. Not thread-safe.
uint64_t CountAllocations();

}  // namespace tug

#endif  // TUG_BASE_MEMORY_COUNT_ALLOCATIONS_H_
