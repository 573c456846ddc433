// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/gradient_pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tug {

GradientPool::GradientPool(std::span<const size_t> block_bytes, uint32_t max_blocks,
                           NewBuffer new_buffer)
    : block_bytes_(block_bytes.begin(), block_bytes.end()),
      new_buffer_(std::move(new_buffer)),
      holds_all_(max_blocks >= block_bytes.size()),
      slot_of_(block_bytes.size()) {
  TUG_CHECK(max_blocks >= 1 && !block_bytes.empty());
  std::vector<size_t> sizes = block_bytes_;
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  sizes.resize(std::min<size_t>(sizes.size(), max_blocks));
  std::reverse(sizes.begin(), sizes.end());
  for (const size_t size_bytes : sizes) {
    slots_.push_back({.size_bytes = size_bytes, .buffer = new_buffer_(size_bytes)});
    held_bytes_ += size_bytes;
  }
  max_size_bytes_ = held_bytes_;
}

std::shared_ptr<AlignedBuffer> GradientPool::Use(size_t slot, uint32_t block) {
  TUG_CHECK(!slot_of_[block].has_value());
  slot_of_[block] = slot;
  slots_[slot].free = false;
  return slots_[slot].buffer;
}

bool GradientPool::Fits(size_t slot_bytes, size_t size_bytes) const {
  return holds_all_ ? slot_bytes == size_bytes : slot_bytes >= size_bytes;
}

std::shared_ptr<AlignedBuffer> GradientPool::Take(uint32_t block) {
  for (size_t s = 0; s < slots_.size(); ++s) {
    Slot& slot = slots_[s];
    if (!slot.free || slot.beyond || !Fits(slot.size_bytes, block_bytes_[block])) continue;
    // A resend in flight keeps its bytes.
    if (!IsOnlyOwner(slot.buffer)) slot.buffer = new_buffer_(slot.size_bytes);
    return Use(s, block);
  }
  return nullptr;
}

std::shared_ptr<AlignedBuffer> GradientPool::AllocateBeyondBound(uint32_t block) {
  const auto unused = std::find_if(slots_.begin(), slots_.end(),
                                   [](const Slot& slot) { return slot.buffer == nullptr; });
  const auto s = static_cast<size_t>(unused - slots_.begin());
  if (unused == slots_.end()) slots_.emplace_back();
  const size_t size_bytes = block_bytes_[block];
  slots_[s] = {.size_bytes = size_bytes, .buffer = new_buffer_(size_bytes), .beyond = true};
  held_bytes_ += size_bytes;
  max_size_bytes_ = std::max(max_size_bytes_, held_bytes_);
  return Use(s, block);
}

std::shared_ptr<AlignedBuffer> GradientPool::TakeAfter(uint32_t block, bool received,
                                                       bool may_exceed) {
  if (received) {
    OnReceived();
    return Take(block);
  }
  return pushed_.empty() || may_exceed ? AllocateBeyondBound(block) : nullptr;
}

void GradientPool::OnPushed(uint32_t block, uint32_t virtual_worker) {
  const std::optional<size_t> slot = std::exchange(slot_of_[block], std::nullopt);
  TUG_CHECK(slot.has_value());
  pushed_.push_back({{block, virtual_worker}, *slot});
}

std::optional<GradientPool::Pushed> GradientPool::oldest() const {
  if (pushed_.empty()) return std::nullopt;
  return pushed_.front().push;
}

void GradientPool::OnReceived() {
  TUG_CHECK(!pushed_.empty());
  Slot& slot = slots_[pushed_.front().slot];
  pushed_.pop_front();
  slot.free = true;
  if (!slot.beyond) return;
  held_bytes_ -= slot.size_bytes;
  slot.buffer = nullptr;
}

}  // namespace tug
