// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/ring_phases.h"

namespace tug {
namespace {

Transfer OfBlock(const Ring& ring, uint32_t position, uint32_t block, bool reduces) {
  const uint32_t peer = ring.first + position % ring.count * ring.stride;
  const uint32_t begin = ring.first_part + block % ring.count * ring.block_parts;
  return {peer, begin, begin + ring.block_parts, reduces};
}

// In step k, sends block `sent` - k to the next rank and receives the block before it.
void AppendTurns(const Ring& ring, uint32_t sent, bool reduces, std::vector<Step>& steps) {
  const uint32_t n = ring.count;
  for (uint32_t k = 0; k + 1 < n; ++k) {
    const uint32_t block = sent + n - k;
    steps.push_back({{OfBlock(ring, ring.position + 1, block, false)},
                     {OfBlock(ring, ring.position + n - 1, block - 1, reduces)}});
  }
}

}  // namespace

void AppendRingReduceScatter(const Ring& ring, std::vector<Step>& steps) {
  AppendTurns(ring, ring.position + ring.count - 1, true, steps);
}

void AppendRingAllGather(const Ring& ring, std::vector<Step>& steps) {
  AppendTurns(ring, ring.position, false, steps);
}

}  // namespace tug
