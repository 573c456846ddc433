#ifndef TUG_WORKER_UNTOUCHED_BUFFER_H_
#define TUG_WORKER_UNTOUCHED_BUFFER_H_

#include <cstddef>

#include "base/lease.h"

namespace tug {

// Zeros that take address space only, and memory page by page as they are written: for weights that
// may never be copied here. REQUIRES: size_bytes > 0.
AlignedBuffer UntouchedBuffer(size_t size_bytes);

}  // namespace tug

#endif  // TUG_WORKER_UNTOUCHED_BUFFER_H_
