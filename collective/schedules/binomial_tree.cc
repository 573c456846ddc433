// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/binomial_tree.h"

#include <bit>

#include "base/check.h"

namespace tug {

// The rounds of the broadcast, reversed in order and direction.
void AppendBinomialReduce(const TreeRanks& group, uint32_t rank, uint32_t parts,
                          std::vector<Step>& steps) {
  std::vector<Step> outwards;
  AppendBinomialBroadcast(group, rank, parts, outwards);
  for (auto step = outwards.rbegin(); step != outwards.rend(); ++step) {
    for (Transfer& receive : step->sends) receive.reduces = true;
    steps.push_back({step->receives, step->sends});
  }
}

void AppendBinomialBroadcast(const TreeRanks& group, uint32_t rank, uint32_t parts,
                             std::vector<Step>& steps) {
  const uint32_t v = rank - group.first;
  for (uint32_t left = group.rounds; left > 0; --left) {
    const uint32_t distance = 1u << (left - 1);
    Step& step = steps.emplace_back();
    if (v % (2 * distance) == 0 && v + distance < group.count) {
      step.sends.push_back({.peer = rank + distance, .end = parts});
    } else if (v % (2 * distance) == distance) {
      step.receives.push_back({.peer = rank - distance, .end = parts});
    }
  }
}

uint32_t BinomialRounds(uint32_t count) {
  TUG_CHECK(count > 0);
  return static_cast<uint32_t>(std::bit_width(count - 1));
}

}  // namespace tug
