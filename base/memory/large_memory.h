// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_MEMORY_LARGE_MEMORY_H_
#define TUG_BASE_MEMORY_LARGE_MEMORY_H_

// Memory for large, long-lived buffers: weights, gradients, optimizer state. It is mapped from the
// kernel, so zeroed pages cost nothing until touched, and each page comes from the NUMA node of the
// thread that touches it first: memory that a lane's thread fills is local to that lane, without
// mbind, if the thread stays on its node (base/cpu/cpu_budget.h). Huge pages are requested for
// buffers of at least one (MADV_HUGEPAGE), subject to /sys/kernel/mm/transparent_hugepage/enabled.
// Thread-safe.
//
// Mapping costs a system call, and a page fault for every page touched: do not use it for memory
// that is allocated in every step.

#include <cstddef>

namespace tug {

// Minimum size of a mapped buffer.
inline constexpr size_t kLargeMemoryBytes = size_t{1} << 20;

// Whether to map memory instead of using the heap. AddressSanitizer detects out-of-bounds reads
// only on the heap.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kMapMemory = false;
#else
inline constexpr bool kMapMemory = true;
#endif

// Returns zeroed memory aligned to a page, or to a huge page (2 MiB) from that size on. Throws
// std::bad_alloc. REQUIRES: size_bytes > 0.
void* MapLargeMemory(size_t size_bytes);

// Unmaps memory from MapLargeMemory. REQUIRES: the same size.
void UnmapLargeMemory(void* memory, size_t size_bytes);

}  // namespace tug

#endif  // TUG_BASE_MEMORY_LARGE_MEMORY_H_
