// SPDX-License-Identifier: Apache-2.0
#include "base/memory/large_blocks.h"

#include <cstdlib>  // defines __GLIBC__

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tug {

void KeepLargeBlocksMapped() {
#ifdef __GLIBC__
  constexpr int kMiB = 1 << 20;
  // glibc's maximum is 32 MiB; larger blocks are still mapped individually.
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);
  mallopt(M_TRIM_THRESHOLD, 1024 * kMiB);
#endif
}

}  // namespace tug
