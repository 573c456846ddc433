// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_UNALIGNED_H_
#define TUG_COMPRESSION_DENSE_UNALIGNED_H_

#include <cstddef>

namespace tug {

// Reads the number at `from`, of any alignment, exactly once: memory that others may write
// meanwhile must not be read twice.
template <typename T>
T LoadOnce(const std::byte* from) {
  using Unaligned [[gnu::aligned(1), gnu::may_alias]] = T;
  return *reinterpret_cast<const volatile Unaligned*>(from);
}

}  // namespace tug

#endif  // TUG_COMPRESSION_DENSE_UNALIGNED_H_
