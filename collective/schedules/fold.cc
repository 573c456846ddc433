// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/fold.h"

#include <bit>

#include "base/check.h"

namespace tug {

Fold::Fold(uint32_t world) : members_(std::bit_floor(world)), pairs_(world - members_) {
  TUG_CHECK(world >= 1);
}

std::optional<uint32_t> Fold::MemberOf(uint32_t rank) const {
  if (rank >= 2 * pairs_) return rank - pairs_;
  if (rank % 2 == 0) return std::nullopt;
  return rank / 2;
}

uint32_t Fold::RankOf(uint32_t member) const {
  return member < pairs_ ? 2 * member + 1 : member + pairs_;
}

void Fold::AppendIn(uint32_t rank, uint32_t parts, std::vector<Step>& steps) const {
  if (pairs_ == 0) return;
  Step& step = steps.emplace_back();
  if (rank >= 2 * pairs_) return;
  if (rank % 2 == 0) {
    step.sends.push_back({rank + 1, 0, parts});
  } else {
    step.receives.push_back({rank - 1, 0, parts, true});
  }
}

void Fold::AppendOut(uint32_t rank, uint32_t parts, std::vector<Step>& steps) const {
  if (pairs_ == 0) return;
  Step& step = steps.emplace_back();
  if (rank >= 2 * pairs_) return;
  if (rank % 2 == 0) {
    step.receives.push_back({rank + 1, 0, parts});
  } else {
    step.sends.push_back({rank - 1, 0, parts});
  }
}

}  // namespace tug
