// SPDX-License-Identifier: Apache-2.0
#include "server/pulls/waiting_pulls.h"

#include <algorithm>

namespace tug {

bool IsSamePull(const WireHeader& a, const WireHeader& b) {
  return a.sender == b.sender && a.block == b.block && a.first_segment == b.first_segment &&
         a.segment_count == b.segment_count && a.clock == b.clock && a.want == b.want &&
         a.codec == b.codec && a.virtual_worker == b.virtual_worker &&
         a.virtual_worker_count == b.virtual_worker_count;
}

bool WaitingPulls::Contains(const WireHeader& header, uint32_t segment) const {
  const std::vector<WaitingPull>& waiting = at_segment_[segment];
  return std::any_of(waiting.begin(), waiting.end(),
                     [&](const WaitingPull& other) { return IsSamePull(other.header, header); });
}

void WaitingPulls::Add(WaitingPull pull, uint32_t segment) {
  ++in_block_[pull.header.block];
  at_segment_[segment].push_back(std::move(pull));
}

void WaitingPulls::ForgetExact(const WireHeader& header, uint32_t first, uint32_t end) {
  for (uint32_t id = first; id < end; ++id) {
    in_block_[header.block] -= std::erase_if(at_segment_[id], [&](const WaitingPull& other) {
      return other.header.want == Want::kExact && other.header.sender == header.sender &&
             other.header.first_segment == header.first_segment;
    });
  }
}

void WaitingPulls::Clear() {
  for (std::vector<WaitingPull>& waiting : at_segment_) waiting.clear();
  std::fill(in_block_.begin(), in_block_.end(), 0);
}

}  // namespace tug
