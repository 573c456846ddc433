// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_SHM_QUEUE_H_
#define TUG_TRANSPORT_SHM_QUEUE_H_

// Memory through which one process passes messages to another: descriptors, and copies of small
// payloads; other payloads stay in place. One direction, one sender, one receiver.
//
// The cost of a short message is the number of cache lines that move between the two cores while
// one of them waits. Here a message needs one line to announce it and the lines of its content;
// returning its slot needs none.
//
//  - `ring` lists the pushed slots in order, each with its lap number, from which the
//    receiver detects new messages. It has one entry per slot, so it never overflows.
//  - A message with its payload in place occupies a slot until the receiver releases it, in any
//    order, on any thread; the sender keeps the payload's lease until then. Released slots are
//    bits: one word per 64 slots, and a summary with one bit per word, so that the sender reads
//    only two cache lines when there are none.
//  - Any other message occupies a slot until it has been taken. The receiver publishes its count of
//    taken messages when it takes one of these; the sender reads it once many copies are pending.
//  - An idle side sets its flag before it sleeps (receiver_sleeps, sender_waits), checks once more,
//    and is woken through the other side's eventfd (shm_connection.h). Flag and message are
//    sequentially consistent on both sides, so at least one side sees the other.
//
// The other side is another process: every value it writes is checked before use, and it can
// corrupt only its own messages.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory/block_pool.h"
#include "base/memory/lease.h"
#include "base/memory/shared_region.h"
#include "proto/wire.h"

namespace tug {

// Number of slots: limit of messages in flight or being read. Only used slots touch memory.
inline constexpr uint32_t kShmSlots = 65536;
inline constexpr uint32_t kShmSlotsInWord = 64;
inline constexpr uint32_t kShmWords = kShmSlots / kShmSlotsInWord;
inline constexpr uint32_t kShmSummaryWords = kShmWords / kShmSlotsInWord;
// Largest payload that is copied into the queue.
inline constexpr size_t kShmCopiedBytes = 8 << 10;

// Location of a payload: in a region of the sender's arena, or with its slot.
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
  alignas(64) std::atomic<uint32_t> taken;  // messages taken in total; wraps
  alignas(64) std::atomic<uint32_t> receiver_sleeps;
  alignas(64) std::atomic<uint32_t> sender_waits;
  alignas(64) std::array<std::atomic<uint64_t>, kShmSummaryWords> summary;
  alignas(64) std::array<std::atomic<uint64_t>, kShmWords> released;
  alignas(64) std::array<std::atomic<uint32_t>, kShmSlots> ring;  // slot + lap x kShmSlots
  alignas(64) std::array<ShmSlot, kShmSlots> slots;
  alignas(64) std::array<std::array<std::byte, kShmCopiedBytes>, kShmSlots> copies;  // by slot
};
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

// Lap of the ring that message `number` belongs to; starts at 1 and wraps. 0 marks fresh memory.
inline constexpr uint32_t ShmLap(uint32_t number) {
  return (number / kShmSlots + 1) % (uint32_t{1} << 16);
}
static_assert(kShmSlots == uint32_t{1} << 16);

// Sending end. Not thread-safe.
class ShmSender {
 public:
  // REQUIRES: a fresh region of at least sizeof(ShmQueueMemory).
  explicit ShmSender(std::shared_ptr<SharedRegion> region);

  // Whether all slots are occupied.
  bool full();
  // Publishes a message whose payload lies at `place` and is held by `lease`. Returns false and
  // drops the lease if all slots are occupied.
  bool Push(std::span<const std::byte, kHeaderBytes> header, const ShmPlace& place, Lease lease);
  // Publishes a message with a copy of the payload, or without one. REQUIRES: at most
  // kShmCopiedBytes.
  bool PushCopy(std::span<const std::byte, kHeaderBytes> header,
                std::span<const std::byte> payload);
  // Whether to ring the receiver: it slept when the last message was published. Resets the flag.
  bool TakeReceiverSleeps();
  // Drops the leases that the receiver has released; also frees the slots of taken copies once
  // there are enough of them.
  void Collect();
  // Requests to be rung when the next slot is released.
  void WaitForRelease() { memory_->sender_waits.store(1); }
  bool HasReleased() const;

  // Slots of messages that are not released or, if copied, not known to be taken.
  uint32_t occupied() const { return kShmSlots - static_cast<uint32_t>(spare_.size()) - unused_; }
  const SharedRegion& region() const { return *region_; }

 private:
  struct Copied {
    uint32_t number;  // message number, as pushed_ counts
    uint32_t slot;
  };

  std::optional<uint32_t> TakeSlot();
  void Publish(uint32_t slot, std::span<const std::byte, kHeaderBytes> header,
               const ShmPlace& place);
  void CollectWord(uint32_t word);
  void CollectTaken();

  const std::shared_ptr<SharedRegion> region_;
  ShmQueueMemory* const memory_;
  uint32_t pushed_ = 0;          // messages pushed in total; wraps
  uint32_t taken_ = 0;           // copy of memory_->taken, possibly outdated
  std::deque<Copied> copied_;    // not known to be taken
  std::vector<Lease> leases_;    // by slot
  std::vector<bool> leased_;     // by slot: until it is released
  std::vector<uint32_t> spare_;  // used slots that are free now; the most recently used last
  uint32_t unused_ = kShmSlots;  // slots from kShmSlots - unused_ on were never used
};

// Receiving end. Take and SetSleeping are for one thread; Release is thread-safe.
class ShmReceiver : public std::enable_shared_from_this<ShmReceiver> {
 public:
  // REQUIRES: a region of at least sizeof(ShmQueueMemory), filled by a ShmSender.
  explicit ShmReceiver(std::shared_ptr<SharedRegion> region);

  struct Taken {
    uint32_t slot = 0;  // below kShmSlots, whatever the sender wrote
    ShmSlot content;    // a copy, so the sender can no longer change it
    Lease payload;      // copy of a payload that lay with its slot
    bool ring = false;  // whether to ring the sender

    // Whether the sender announced more payload bytes than a slot has.
    bool is_too_long() const { return !is_leased() && content.payload.bytes > kShmCopiedBytes; }
    // Whether the caller must Release the slot, exactly once.
    bool is_leased() const { return content.payload.region != ShmPlace::kWithSlot; }
  };
  // Returns the next message; nothing if there is none.
  std::optional<Taken> Take();
  bool HasMessage() const {
    return memory_->ring[taken_ % kShmSlots].load() / kShmSlots == ShmLap(taken_);
  }

  // Releases the slot of a leased message. Thread-safe. Returns whether to ring the sender.
  bool Release(uint32_t slot);

  void SetSleeping(bool sleeping) { memory_->receiver_sleeps.store(sleeping ? 1 : 0); }

 private:
  // Whether the sender asked to be rung. Resets the flag.
  bool SenderWaits();

  const std::shared_ptr<SharedRegion> region_;
  ShmQueueMemory* const memory_;
  const std::shared_ptr<BlockPool> copies_ = std::make_shared<BlockPool>();
  uint32_t taken_ = 0;  // messages taken in total; wraps
};

}  // namespace tug

#endif  // TUG_TRANSPORT_SHM_QUEUE_H_
