#ifndef TUG_BASE_LARGE_BLOCKS_H_
#define TUG_BASE_LARGE_BLOCKS_H_

namespace tug {

// Tells the C library's allocator to keep freed blocks of up to 32 MiB for the next allocation
// instead of returning them to the kernel. libzmq allocates every large message it receives; a
// block that is mapped for one message is faulted in page by page and unmapped again. (glibc raises
// its threshold by itself as such blocks are freed; this makes it so from the start, and stops the
// trimming in between.) Our own large buffers do not come from this allocator
// (base/large_memory.h). The price: the process holds on to the memory of its busiest moment.
//
// Called once at the start of a daemon's main, before other threads exist. No effect on anything
// but speed and memory; does nothing where the C library is not glibc.
void KeepLargeBlocksMapped();

}  // namespace tug

#endif  // TUG_BASE_LARGE_BLOCKS_H_
