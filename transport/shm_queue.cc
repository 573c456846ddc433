// SPDX-License-Identifier: Apache-2.0
#include "transport/shm_queue.h"

#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "kernels/copy.h"

namespace tug {
namespace {

// Each check takes a cache line from the receiver.
constexpr size_t kCopiedBetweenLooks = 8;

constexpr uint64_t kCacheLineBytes = 64;

// From this size on, the initial wait for memory costs less than the transfers of cache lines
// between cores.
constexpr size_t kAroundCachesBytes = 1 << 10;

void CopyForReceiver(std::span<const std::byte> payload, std::byte* to) {
  const size_t floats = payload.size() < kAroundCachesBytes ? 0 : payload.size() / sizeof(float);
  const size_t done = floats * sizeof(float);
  if (floats > 0) {
    kernels::CopyForAnotherCore(reinterpret_cast<const float*>(payload.data()),
                                reinterpret_cast<float*>(to), static_cast<int64_t>(floats));
  }
  if (payload.size() > done) {
    std::memcpy(to + done, payload.data() + done, payload.size() - done);
  }
}

ShmQueueMemory* MemoryOf(SharedRegion& region) {
  TUG_CHECK(region.bytes().size() >= sizeof(ShmQueueMemory));
  // Fresh pages are zero, which is an empty queue.
  return reinterpret_cast<ShmQueueMemory*>(region.bytes().data());
}

}  // namespace

ShmSender::ShmSender(std::shared_ptr<SharedRegion> region)
    : region_(std::move(region)), memory_(MemoryOf(*region_)) {}

bool ShmSender::full() {
  if (spare_.empty() && unused_ == 0) CollectTaken();
  return spare_.empty() && unused_ == 0;
}

std::optional<uint32_t> ShmSender::TakeSlot() {
  if (full()) return std::nullopt;
  if (!spare_.empty()) {
    const uint32_t slot = spare_.back();
    spare_.pop_back();
    return slot;
  }
  leases_.emplace_back();
  leased_.push_back(false);
  return kShmSlots - unused_--;
}

bool ShmSender::Push(std::span<const std::byte, kHeaderBytes> header, const ShmPlace& place,
                     Lease lease) {
  const std::optional<uint32_t> slot = TakeSlot();
  if (!slot.has_value()) return false;
  leases_[*slot] = std::move(lease);
  leased_[*slot] = true;
  Publish(*slot, header, place);
  return true;
}

bool ShmSender::PushCopy(std::span<const std::byte, kHeaderBytes> header,
                         std::span<const std::byte> payload) {
  TUG_CHECK_LE(payload.size(), kShmCopiedBytes);
  const std::optional<uint32_t> slot = TakeSlot();
  if (!slot.has_value()) return false;
  CopyForReceiver(payload, memory_->copies[*slot].data());
  copied_.push_back({pushed_, *slot});
  Publish(*slot, header, {.region = ShmPlace::kWithSlot, .bytes = payload.size()});
  return true;
}

void ShmSender::Publish(uint32_t slot, std::span<const std::byte, kHeaderBytes> header,
                        const ShmPlace& place) {
  ShmSlot& to = memory_->slots[slot];
  std::memcpy(to.header.data(), header.data(), header.size());
  to.payload = place;
  // Sequentially consistent, like the receiver's sleep flag: either it sees this message, or we see
  // that it sleeps.
  memory_->ring[pushed_ % kShmSlots].store(ShmLap(pushed_) * kShmSlots + slot);
  ++pushed_;
}

bool ShmSender::TakeReceiverSleeps() {
  // Load first: an exchange would take the cache line from the receiver each time.
  return memory_->receiver_sleeps.load() != 0 && memory_->receiver_sleeps.exchange(0) != 0;
}

bool ShmSender::HasReleased() const {
  for (const std::atomic<uint64_t>& bits : memory_->summary) {
    if (bits.load() != 0) return true;
  }
  return memory_->taken.load() != taken_;
}

void ShmSender::Collect() {
  if (copied_.size() >= kCopiedBetweenLooks) CollectTaken();
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
    // Ignore a bit of a slot without a lease: the peer's error.
    if (slot >= leased_.size() || !leased_[slot]) continue;
    leased_[slot] = false;
    leases_[slot] = Lease();
    spare_.push_back(slot);
  }
}

void ShmSender::CollectTaken() {
  taken_ = memory_->taken.load();
  if (pushed_ - taken_ > kShmSlots) return;  // the peer's error
  while (!copied_.empty() && pushed_ - copied_.front().number > pushed_ - taken_) {
    spare_.push_back(copied_.front().slot);
    copied_.pop_front();
  }
}

ShmReceiver::ShmReceiver(std::shared_ptr<SharedRegion> region)
    : region_(std::move(region)), memory_(MemoryOf(*region_)) {}

std::optional<ShmReceiver::Taken> ShmReceiver::Take() {
  if (!HasMessage()) return std::nullopt;
  std::optional<Taken> taken(std::in_place);
  taken->slot = memory_->ring[taken_ % kShmSlots].load(std::memory_order_relaxed) % kShmSlots;
  ++taken_;
  std::memcpy(&taken->content, &memory_->slots[taken->slot], sizeof(ShmSlot));
  if (taken->is_leased()) return taken;
  if (const uint64_t bytes = taken->content.payload.bytes; bytes > 0 && !taken->is_too_long()) {
    const std::byte* const from = memory_->copies[taken->slot].data();
    // Prefetch while memory for the copy is allocated.
    for (uint64_t at = 0; at < bytes; at += kCacheLineBytes) __builtin_prefetch(from + at);
    const std::shared_ptr<PoolBlock> copy = NewPoolBlock(copies_, bytes);
    std::memcpy(copy->data(), from, bytes);
    taken->payload = Lease(copy, std::span<const std::byte>(copy->data(), bytes));
  }
  memory_->taken.store(taken_);
  taken->ring = SenderWaits();
  return taken;
}

bool ShmReceiver::Release(uint32_t slot) {
  const uint32_t word = slot / kShmSlotsInWord;
  memory_->released[word].fetch_or(uint64_t{1} << (slot % kShmSlotsInWord));
  memory_->summary[word / kShmSlotsInWord].fetch_or(uint64_t{1} << (word % kShmSlotsInWord));
  return SenderWaits();
}

bool ShmReceiver::SenderWaits() {
  return memory_->sender_waits.load() != 0 && memory_->sender_waits.exchange(0) != 0;
}

}  // namespace tug
