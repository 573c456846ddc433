// SPDX-License-Identifier: Apache-2.0
#include "server/pushes/open_pushes.h"

#include <algorithm>

namespace tug {

PushKey KeyOf(const WireHeader& header) {
  return {header.sender,        header.block,          header.first_segment,
          header.segment_count, header.virtual_worker, header.virtual_worker_count,
          header.clock};
}

void SetPush(const PushKey& key, WireHeader& header) {
  header.block = key.block;
  header.first_segment = key.first_segment;
  header.segment_count = key.segment_count;
  header.virtual_worker = key.virtual_worker;
  header.virtual_worker_count = key.virtual_worker_count;
  header.clock = key.clock;
}

bool OpenPushes::Contains(const PushKey& key, uint32_t segment) const {
  return std::any_of(by_segment_[segment].begin(), by_segment_[segment].end(),
                     [&](uint32_t index) { return entries_[index].key == key; });
}

void OpenPushes::Add(const PushKey& key, std::span<const uint32_t> segments) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(entries_.size()));
    entries_.emplace_back();
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  entries_[index] = {key, static_cast<uint32_t>(segments.size())};
  for (const uint32_t segment : segments) by_segment_[segment].push_back(index);
  ++in_block_[key.block];
}

void OpenPushes::Clear() {
  for (std::vector<uint32_t>& indices : by_segment_) indices.clear();
  std::fill(in_block_.begin(), in_block_.end(), 0);
  entries_.clear();
  free_.clear();
}

}  // namespace tug
