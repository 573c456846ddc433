#include "base/large_blocks.h"

#include <cstdlib>  // says whether this is glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tug {

void KeepLargeBlocksMapped() {
#ifdef __GLIBC__
  constexpr int kMiB = 1 << 20;
  // 32 MiB is the most that glibc takes; larger blocks are mapped one by one as before.
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);
  mallopt(M_TRIM_THRESHOLD, 1024 * kMiB);
#endif
}

}  // namespace tug
