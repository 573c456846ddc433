// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/weight_memory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/bf16.h"
#include "worker/gradients/untouched_buffer.h"

namespace tug {
namespace {

std::span<kernels::Bf16> Bf16Elements(AlignedBuffer& buffer) {
  return {reinterpret_cast<kernels::Bf16*>(buffer.data()),
          buffer.size_bytes() / sizeof(kernels::Bf16)};
}

uint64_t PoolBytes(std::span<const size_t> block_bytes, const std::vector<bool>& in_place,
                   const std::optional<BlockWindow>& window) {
  if (!window.has_value()) return 0;
  std::vector<BlockWeightBytes> bytes;
  for (size_t b = 0; b < block_bytes.size(); ++b) {
    bytes.push_back({.own = in_place[b] ? 0 : block_bytes[b]});
  }
  return MostInWindow(*window, bytes).own;
}

}  // namespace

WeightMemory::WeightMemory(std::span<const size_t> block_bytes, std::vector<bool> in_place,
                           const std::optional<BlockWindow>& window, bool bf16)
    : bf16_(bf16), pool_(PoolBytes(block_bytes, in_place, window)) {
  TUG_CHECK_EQ(block_bytes.size(), in_place.size());
  for (size_t b = 0; b < block_bytes.size(); ++b) {
    Block& block = blocks_.emplace_back();
    block.size_bytes = block_bytes[b];
    block.in_place = in_place[b] || !window.has_value();  // may be read in place
    if (!window.has_value()) block.own = UntouchedBuffer(block.size_bytes);
  }
}

void WeightMemory::Take(uint32_t block) {
  Block& taken = blocks_[block];
  TUG_CHECK_EQ(taken.own.size_bytes(), 0u);
  taken.own = taken.in_place ? UntouchedBuffer(taken.size_bytes) : pool_.Take(taken.size_bytes);
  Count();
}

void WeightMemory::Drop(uint32_t block) {
  Block& dropped = blocks_[block];
  dropped.lanes = {};
  TUG_CHECK_EQ(dropped.own.size_bytes(), dropped.size_bytes);
  AlignedBuffer own = std::exchange(dropped.own, {});
  if (!dropped.in_place) return pool_.Give(std::move(own));
  if (std::exchange(dropped.counted, false)) counted_bytes_ -= dropped.size_bytes;
}

void WeightMemory::OnCopied(uint32_t block) {
  Block& copied = blocks_[block];
  if (!copied.in_place || std::exchange(copied.counted, true)) return;
  counted_bytes_ += copied.size_bytes;
  Count();
}

void WeightMemory::SetDestination(PullRequest& request) {
  Block& block = blocks_[request.block];
  block.lanes = {};
  if (block.own.size_bytes() == 0) Take(request.block);
  if (bf16_) {
    request.bf16_destination = Bf16Elements(block.own);
  } else {
    request.destination = block.own.floats();
  }
}

void WeightMemory::OnPulled(uint32_t block, InPlaceWeights in_place) {
  if (in_place.leases.empty()) OnCopied(block);
  blocks_[block].lanes = std::move(in_place);
}

WeightsView WeightMemory::ViewOf(uint32_t block) {
  Block& of = blocks_[block];
  if (bf16_) {
    return {.bf16 = of.lanes.bf16_elements.empty() ? Bf16Elements(of.own) : of.lanes.bf16_elements};
  }
  return {.fp32 = of.lanes.elements.empty() ? of.own.floats() : of.lanes.elements};
}

void WeightMemory::Count() {
  max_size_bytes_ = std::max(max_size_bytes_, counted_bytes_ + pool_.total_bytes());
}

}  // namespace tug
