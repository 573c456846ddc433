#ifndef TUG_COMPRESSION_UNALIGNED_H_
#define TUG_COMPRESSION_UNALIGNED_H_

#include <cstddef>

namespace tug {

// The number at `from`, wherever it lies, read once and no more: what others may write to meanwhile
// must not be looked at twice.
template <typename T>
T LoadOnce(const std::byte* from) {
  using Unaligned [[gnu::aligned(1), gnu::may_alias]] = T;
  return *reinterpret_cast<const volatile Unaligned*>(from);
}

}  // namespace tug

#endif  // TUG_COMPRESSION_UNALIGNED_H_
