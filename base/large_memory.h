#ifndef TUG_BASE_LARGE_MEMORY_H_
#define TUG_BASE_LARGE_MEMORY_H_

// Memory for buffers that are large and live long: weights, gradients, an optimizer's state.
// Mapped from the kernel, so its zeros cost nothing until a page is touched, and a page comes from
// the NUMA node of the thread that touches it first: what a lane's own thread makes and fills is
// near that lane, without mbind (and with a thread that stays on its node, base/cpu_budget.h).
// Huge pages are asked for where a whole one fits (MADV_HUGEPAGE; the machine's
// /sys/kernel/mm/transparent_hugepage/enabled has the last word). Thread-safe.
//
// Mapping costs a system call, and a page fault for every page touched: not for memory that is
// made again every step.

#include <cstddef>

namespace tug {

// Buffers of this size and more are mapped.
inline constexpr size_t kLargeMemoryBytes = size_t{1} << 20;

// Whether to map what could come from the heap: AddressSanitizer sees who reads past the end only
// of what does.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kMapMemory = false;
#else
inline constexpr bool kMapMemory = true;
#endif

// Zero-filled, aligned to a page, to a huge page (2 MiB) from that size on. Throws std::bad_alloc.
// REQUIRES: size_bytes > 0.
void* MapLargeMemory(size_t size_bytes);

// Gives back what MapLargeMemory returned for the same size.
void UnmapLargeMemory(void* memory, size_t size_bytes);

}  // namespace tug

#endif  // TUG_BASE_LARGE_MEMORY_H_
