// SPDX-License-Identifier: Apache-2.0
#include "server/sync/bsp_policy.h"

namespace tug {
namespace {

class BspPolicy final : public SumPolicy {
 public:
  PushFate FateOf(uint32_t, uint64_t clock, const SegmentClocks& segment) const override {
    if (clock == segment.version) return PushFate::kTake;
    return clock < segment.version ? PushFate::kCommitted : PushFate::kImpossible;
  }
  bool Closes(uint32_t arrived, uint32_t live) const override {
    return arrived > 0 && arrived >= live;
  }
};

}  // namespace

std::unique_ptr<const SyncPolicy> MakeBspPolicy(const SyncConfig&) {
  return std::make_unique<const BspPolicy>();
}

}  // namespace tug
