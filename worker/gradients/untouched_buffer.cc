// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/untouched_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include "base/check.h"

namespace tug {

AlignedBuffer UntouchedBuffer(size_t size_bytes) {
  void* const pages = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TUG_CHECK(pages != MAP_FAILED) << "no address space for " << size_bytes
                                 << " bytes: " << std::strerror(errno);
  std::shared_ptr<void> owner(pages, [size_bytes](void* p) { munmap(p, size_bytes); });
  return AlignedBuffer(std::move(owner), {static_cast<std::byte*>(pages), size_bytes});
}

}  // namespace tug
