// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_GRADIENTS_UNTOUCHED_BUFFER_H_
#define TUG_WORKER_GRADIENTS_UNTOUCHED_BUFFER_H_

#include <cstddef>

#include "base/memory/lease.h"

namespace tug {

// Zeros that take only address space, and memory page by page on first write: for weights that may
// never be copied here. REQUIRES: size_bytes > 0.
AlignedBuffer UntouchedBuffer(size_t size_bytes);

}  // namespace tug

#endif  // TUG_WORKER_GRADIENTS_UNTOUCHED_BUFFER_H_
