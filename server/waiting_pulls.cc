#include "server/waiting_pulls.h"

#include <algorithm>

namespace tug {

bool WaitingPulls::Contains(const WireHeader& header, uint32_t segment) const {
  return std::any_of(
      at_segment_[segment].begin(), at_segment_[segment].end(), [&](const WaitingPull& other) {
        const WireHeader& h = other.header;
        return h.sender == header.sender && h.block == header.block &&
               h.first_segment == header.first_segment && h.segment_count == header.segment_count &&
               h.version == header.version && h.want == header.want && h.codec == header.codec;
      });
}

void WaitingPulls::Add(WaitingPull pull, uint32_t segment) {
  ++in_block_[pull.header.block];
  at_segment_[segment].push_back(std::move(pull));
}

}  // namespace tug
