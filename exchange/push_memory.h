#ifndef TUG_EXCHANGE_PUSH_MEMORY_H_
#define TUG_EXCHANGE_PUSH_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/lease.h"

namespace tug {

// The buffers a program pushes from, and which of its pushes are still read from them: a repeat of
// a push may be under way when the push itself is committed. Thread-safe.
class PushMemory : public std::enable_shared_from_this<PushMemory> {
 public:
  // Keeps the buffer, and returns where it begins.
  void* Keep(std::shared_ptr<AlignedBuffer> buffer);
  // Whether the bytes lie in one kept buffer, aligned to be sent from there.
  bool Holds(std::span<const std::byte> bytes) const;
  // A lease on kept bytes that counts as a reader of `ticket` until its last copy has gone, which
  // may be on any thread. REQUIRES: Holds(bytes).
  Lease LeaseOut(std::span<const std::byte> bytes, uint64_t ticket);
  // Blocks until nobody reads for `ticket`, or End.
  void AwaitUnread(uint64_t ticket) const;
  // Ends all waits, now and later.
  void End();

 private:
  std::shared_ptr<AlignedBuffer> Find(std::span<const std::byte> bytes) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<AlignedBuffer>> buffers_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> read_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_PUSH_MEMORY_H_
