// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_MEMORY_LARGE_BLOCKS_H_
#define TUG_BASE_MEMORY_LARGE_BLOCKS_H_

namespace tug {

// Makes the C library's allocator keep freed blocks of up to 32 MiB for later allocations instead
// of returning them to the kernel. libzmq allocates every large message it receives; a block mapped
// for a single message is faulted in page by page and unmapped again. (glibc raises its threshold
// itself as such blocks are freed; this sets it from the start and stops trimming.) Tugboat's own
// large buffers do not use this allocator (base/memory/large_memory.h). The cost: the process keeps
// its peak memory.
//
// Call once at the start of a daemon's main, before other threads exist. Affects only speed and
// memory; does nothing without glibc.
void KeepLargeBlocksMapped();

}  // namespace tug

#endif  // TUG_BASE_MEMORY_LARGE_BLOCKS_H_
