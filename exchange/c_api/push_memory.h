// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_C_API_PUSH_MEMORY_H_
#define TUG_EXCHANGE_C_API_PUSH_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/memory/lease.h"

namespace tug {

// Buffers that a program pushes from. Tracks which pushes still have readers: a resend may be in
// flight when its push is already committed. Thread-safe.
class PushMemory : public std::enable_shared_from_this<PushMemory> {
 public:
  // Keeps the buffer alive and returns its first byte.
  void* Keep(std::shared_ptr<AlignedBuffer> buffer);
  // Whether the bytes lie in one kept buffer, aligned for sending in place.
  bool Holds(std::span<const std::byte> bytes) const;
  // Returns a lease on kept bytes. It counts as a reader of `ticket` until its last copy is
  // destroyed, on any thread. REQUIRES: Holds(bytes).
  Lease LeaseOut(std::span<const std::byte> bytes, uint64_t ticket);
  // Blocks until `ticket` has no reader, or until End.
  void AwaitUnread(uint64_t ticket) const;
  // Ends all current and future waits.
  void End();

 private:
  std::shared_ptr<AlignedBuffer> Find(std::span<const std::byte> bytes) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<AlignedBuffer>> buffers_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> read_ ABSL_GUARDED_BY(mutex_);  // tickets with a reader
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_C_API_PUSH_MEMORY_H_
