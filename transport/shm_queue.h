#ifndef TUG_TRANSPORT_SHM_QUEUE_H_
#define TUG_TRANSPORT_SHM_QUEUE_H_

// The memory through which one process hands messages to another: descriptors only, payloads stay
// where they are. One direction, one sender, one receiver.
//
//  - A message occupies a slot from Push until the receiver has released it, in any order, from any
//    thread; the sender keeps the payload's lease for as long.
//  - `ring` lists the slots pushed, in order. It has as many places as there are slots, so it never
//    overflows and needs no word from the receiver.
//  - Released slots are bits: a word for 64 slots, and a summary with a bit for each such word, so
//    that the sender finds them by reading two cache lines when there are none.
//  - Who finds nothing to do says so before it sleeps (receiver_sleeps, sender_waits), looks once
//    more, and is rung by the other side's eventfd (shm_connection.h). Both sides of that handshake
//    are sequentially consistent: one of the two sees the other.
//
// The other side is another process: every value it writes is checked before it is used, and what
// it can break is its own messages.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/lease.h"
#include "base/shared_region.h"
#include "proto/wire.h"

namespace tug {

// Slots, the messages that can be on their way or being read. Memory is only touched for those that
// are used.
inline constexpr uint32_t kShmSlots = 65536;
inline constexpr uint32_t kShmSlotsInWord = 64;
inline constexpr uint32_t kShmWords = kShmSlots / kShmSlotsInWord;
inline constexpr uint32_t kShmSummaryWords = kShmWords / kShmSlotsInWord;

// Where a payload lies: in a region of the sender's arena.
struct ShmPlace {
  uint32_t region = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct ShmSlot {
  std::array<std::byte, kHeaderBytes> header;
  ShmPlace payload;
  uint64_t unused;
};
static_assert(sizeof(ShmSlot) == 128);

struct ShmQueueMemory {
  alignas(64) std::atomic<uint32_t> pushed;  // total, wraps
  alignas(64) std::atomic<uint32_t> receiver_sleeps;
  alignas(64) std::atomic<uint32_t> sender_waits;
  alignas(64) std::array<std::atomic<uint64_t>, kShmSummaryWords> summary;
  alignas(64) std::array<std::atomic<uint64_t>, kShmWords> released;
  alignas(64) std::array<std::atomic<uint32_t>, kShmSlots> ring;
  alignas(64) std::array<ShmSlot, kShmSlots> slots;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

// The sender's end. Not thread-safe.
class ShmSender {
 public:
  // REQUIRES: a fresh region of at least sizeof(ShmQueueMemory).
  explicit ShmSender(std::shared_ptr<SharedRegion> region);

  bool full() const { return spare_.empty() && unused_ == 0; }
  // Publishes a message; false, and the lease is gone, if all slots are occupied. `lease` holds the
  // payload at `place`.
  bool Push(std::span<const std::byte, kHeaderBytes> header, const ShmPlace& place, Lease lease);
  // Whether the receiver is to be rung: it slept when the last message was published. Once.
  bool TakeReceiverSleeps();
  // Lets go of what the receiver has released.
  void Collect();
  // Asks to be rung at the next release.
  void WaitForRelease() { memory_->sender_waits.store(1); }
  bool HasReleased() const;

  uint32_t occupied() const { return kShmSlots - static_cast<uint32_t>(spare_.size()) - unused_; }
  const SharedRegion& region() const { return *region_; }

 private:
  std::optional<uint32_t> TakeSlot();
  void CollectWord(uint32_t word);

  const std::shared_ptr<SharedRegion> region_;
  ShmQueueMemory* const memory_;
  uint32_t pushed_ = 0;
  std::vector<Lease> leases_;    // by slot
  std::vector<bool> occupied_;   // by slot
  std::vector<uint32_t> spare_;  // slots used before and free now; the warmest last
  uint32_t unused_ = kShmSlots;  // slots from kShmSlots - unused_ on were never used
};

// The receiver's end. Take and the sleeping protocol are for one thread; Release for any.
class ShmReceiver : public std::enable_shared_from_this<ShmReceiver> {
 public:
  // REQUIRES: a region of at least sizeof(ShmQueueMemory), filled by a ShmSender.
  explicit ShmReceiver(std::shared_ptr<SharedRegion> region);

  struct Taken {
    uint32_t slot = 0;  // below kShmSlots, whatever the sender wrote
    ShmSlot content;    // a copy: the sender cannot change it any more
  };
  // The next message; nothing if there is none. It is to be released once.
  std::optional<Taken> Take();
  bool HasMessage() const { return memory_->pushed.load() != taken_; }

  // Gives a slot back. Thread-safe. Returns whether the sender is to be rung.
  bool Release(uint32_t slot);

  void SetSleeping(bool sleeping) { memory_->receiver_sleeps.store(sleeping ? 1 : 0); }

 private:
  const std::shared_ptr<SharedRegion> region_;
  ShmQueueMemory* const memory_;
  uint32_t taken_ = 0;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_SHM_QUEUE_H_
