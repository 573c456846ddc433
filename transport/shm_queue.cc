#include "transport/shm_queue.h"

#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace tug {
namespace {

ShmQueueMemory* MemoryOf(SharedRegion& region) {
  TUG_CHECK(region.bytes().size() >= sizeof(ShmQueueMemory));
  // Fresh pages are zero, which is the empty queue.
  return reinterpret_cast<ShmQueueMemory*>(region.bytes().data());
}

}  // namespace

ShmSender::ShmSender(std::shared_ptr<SharedRegion> region)
    : region_(std::move(region)), memory_(MemoryOf(*region_)) {}

std::optional<uint32_t> ShmSender::TakeSlot() {
  if (!spare_.empty()) {
    const uint32_t slot = spare_.back();
    spare_.pop_back();
    return slot;
  }
  if (unused_ == 0) return std::nullopt;
  leases_.emplace_back();
  occupied_.push_back(false);
  return kShmSlots - unused_--;
}

bool ShmSender::Push(std::span<const std::byte, kHeaderBytes> header, const ShmPlace& place,
                     Lease lease) {
  const std::optional<uint32_t> slot = TakeSlot();
  if (!slot.has_value()) return false;
  ShmSlot& to = memory_->slots[*slot];
  std::memcpy(to.header.data(), header.data(), header.size());
  to.payload = place;
  leases_[*slot] = std::move(lease);
  occupied_[*slot] = true;
  memory_->ring[pushed_ % kShmSlots].store(*slot, std::memory_order_relaxed);
  // Sequentially consistent, as the receiver's sleep: either it sees this message, or we see that
  // it sleeps.
  memory_->pushed.store(++pushed_);
  return true;
}

bool ShmSender::TakeReceiverSleeps() {
  // A plain look first: an exchange would take the cache line from the receiver each time.
  return memory_->receiver_sleeps.load() != 0 && memory_->receiver_sleeps.exchange(0) != 0;
}

bool ShmSender::HasReleased() const {
  for (const std::atomic<uint64_t>& bits : memory_->summary) {
    if (bits.load() != 0) return true;
  }
  return false;
}

void ShmSender::Collect() {
  for (uint32_t s = 0; s < kShmSummaryWords; ++s) {
    if (memory_->summary[s].load(std::memory_order_relaxed) == 0) continue;
    uint64_t words = memory_->summary[s].exchange(0, std::memory_order_acquire);
    for (; words != 0; words &= words - 1) {
      CollectWord(s * kShmSlotsInWord + static_cast<uint32_t>(std::countr_zero(words)));
    }
  }
}

void ShmSender::CollectWord(uint32_t word) {
  uint64_t bits = memory_->released[word].exchange(0, std::memory_order_acquire);
  for (; bits != 0; bits &= bits - 1) {
    const uint32_t slot = word * kShmSlotsInWord + static_cast<uint32_t>(std::countr_zero(bits));
    // A bit of a slot that is not occupied is the peer's mistake.
    if (slot >= occupied_.size() || !occupied_[slot]) continue;
    occupied_[slot] = false;
    leases_[slot] = Lease();
    spare_.push_back(slot);
  }
}

ShmReceiver::ShmReceiver(std::shared_ptr<SharedRegion> region)
    : region_(std::move(region)), memory_(MemoryOf(*region_)) {}

std::optional<ShmReceiver::Taken> ShmReceiver::Take() {
  if (!HasMessage()) return std::nullopt;
  Taken taken;
  taken.slot = memory_->ring[taken_++ % kShmSlots].load(std::memory_order_relaxed) % kShmSlots;
  std::memcpy(&taken.content, &memory_->slots[taken.slot], sizeof(ShmSlot));
  return taken;
}

bool ShmReceiver::Release(uint32_t slot) {
  const uint32_t word = slot / kShmSlotsInWord;
  memory_->released[word].fetch_or(uint64_t{1} << (slot % kShmSlotsInWord));
  memory_->summary[word / kShmSlotsInWord].fetch_or(uint64_t{1} << (word % kShmSlotsInWord));
  return memory_->sender_waits.load() != 0 && memory_->sender_waits.exchange(0) != 0;
}

}  // namespace tug
