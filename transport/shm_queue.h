#ifndef TUG_TRANSPORT_SHM_QUEUE_H_
#define TUG_TRANSPORT_SHM_QUEUE_H_

// The memory through which one process hands messages to another: descriptors, and copies of small
// payloads; other payloads stay where they are. One direction, one sender, one receiver.
//
// What a short message costs is how often a cache line goes from one core to the other while one of
// them waits for it. So it is one line that says it is there, those with what it says, and none for
// giving its slot back.
//
//  - `ring` lists the slots pushed, in order, each with the lap it was pushed in, by which the
//    receiver sees what is new. It has as many places as there are slots, so it never overflows.
//  - A message whose payload stays where it is occupies a slot until the receiver has released it,
//    in any order, from any thread; the sender keeps the payload's lease for as long. Released
//    slots are bits: a word for 64 slots, and a summary with a bit for each such word, so that the
//    sender finds them by reading two cache lines when there are none.
//  - Any other occupies a slot until it has been taken. That is a count, which is written when one
//    of these is taken, and read when many of them are not known to be.
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
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/block_pool.h"
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
// Of a payload that is copied into the queue.
inline constexpr size_t kShmCopiedBytes = 8 << 10;

// Where a payload lies: in a region of the sender's arena, or with its slot.
struct ShmPlace {
  static constexpr uint32_t kWithSlot = ~uint32_t{0};
  uint32_t region = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct ShmSlot {
  std::array<std::byte, kHeaderBytes> header;
  ShmPlace payload;
};
static_assert(sizeof(ShmSlot) == 128);

struct ShmQueueMemory {
  alignas(64) std::atomic<uint32_t> taken;  // total, wraps
  alignas(64) std::atomic<uint32_t> receiver_sleeps;
  alignas(64) std::atomic<uint32_t> sender_waits;
  alignas(64) std::array<std::atomic<uint64_t>, kShmSummaryWords> summary;
  alignas(64) std::array<std::atomic<uint64_t>, kShmWords> released;
  alignas(64) std::array<std::atomic<uint32_t>, kShmSlots> ring;  // slot, and lap x kShmSlots
  alignas(64) std::array<ShmSlot, kShmSlots> slots;
  alignas(64) std::array<std::array<std::byte, kShmCopiedBytes>, kShmSlots> copies;  // by slot
};
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

// In which lap of the ring message `number` is, from 1, wraps: 0 is in fresh memory.
inline constexpr uint32_t ShmLap(uint32_t number) {
  return (number / kShmSlots + 1) % (uint32_t{1} << 16);
}
static_assert(kShmSlots == uint32_t{1} << 16);

// The sender's end. Not thread-safe.
class ShmSender {
 public:
  // REQUIRES: a fresh region of at least sizeof(ShmQueueMemory).
  explicit ShmSender(std::shared_ptr<SharedRegion> region);

  // Whether all slots are occupied.
  bool full();
  // Publishes a message; false, and the lease is gone, if all slots are occupied. `lease` holds the
  // payload at `place`.
  bool Push(std::span<const std::byte, kHeaderBytes> header, const ShmPlace& place, Lease lease);
  // The same with a copy of the payload, or with none. REQUIRES: at most kShmCopiedBytes.
  bool PushCopy(std::span<const std::byte, kHeaderBytes> header,
                std::span<const std::byte> payload);
  // Whether the receiver is to be rung: it slept when the last message was published. Once.
  bool TakeReceiverSleeps();
  // Lets go of what the receiver has released, and now and then of what it has taken.
  void Collect();
  // Asks to be rung when the next slot is given back.
  void WaitForRelease() { memory_->sender_waits.store(1); }
  bool HasReleased() const;

  // Slots of messages that have not been released, or were copied and are not known to be taken.
  uint32_t occupied() const { return kShmSlots - static_cast<uint32_t>(spare_.size()) - unused_; }
  const SharedRegion& region() const { return *region_; }

 private:
  struct Copied {
    uint32_t number;  // of the message, as pushed_ counts
    uint32_t slot;
  };

  std::optional<uint32_t> TakeSlot();
  void Publish(uint32_t slot, std::span<const std::byte, kHeaderBytes> header,
               const ShmPlace& place);
  void CollectWord(uint32_t word);
  void CollectTaken();

  const std::shared_ptr<SharedRegion> region_;
  ShmQueueMemory* const memory_;
  uint32_t pushed_ = 0;          // total, wraps
  uint32_t taken_ = 0;           // of these, as of the last look
  std::deque<Copied> copied_;    // not known to be taken
  std::vector<Lease> leases_;    // by slot
  std::vector<bool> leased_;     // by slot: until it is released
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
    Lease payload;      // a copy of one that lay with the slot
    bool ring = false;  // whether the sender is to be rung

    // Whether the sender took the payload's bytes for more than a slot has.
    bool is_too_long() const { return !is_leased() && content.payload.bytes > kShmCopiedBytes; }
    // Whether it is to be released, once.
    bool is_leased() const { return content.payload.region != ShmPlace::kWithSlot; }
  };
  // The next message; nothing if there is none.
  std::optional<Taken> Take();
  bool HasMessage() const {
    return memory_->ring[taken_ % kShmSlots].load() / kShmSlots == ShmLap(taken_);
  }

  // Gives the slot of a leased message back. Thread-safe. Returns whether the sender is to be rung.
  bool Release(uint32_t slot);

  void SetSleeping(bool sleeping) { memory_->receiver_sleeps.store(sleeping ? 1 : 0); }

 private:
  // Whether the sender has asked to be rung. Once.
  bool SenderWaits();

  const std::shared_ptr<SharedRegion> region_;
  ShmQueueMemory* const memory_;
  const std::shared_ptr<BlockPool> copies_ = std::make_shared<BlockPool>();
  uint32_t taken_ = 0;  // total, wraps
};

}  // namespace tug

#endif  // TUG_TRANSPORT_SHM_QUEUE_H_
