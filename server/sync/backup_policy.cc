// SPDX-License-Identifier: Apache-2.0
#include "server/sync/backup_policy.h"

#include <algorithm>

namespace tug {
namespace {

class BackupPolicy final : public SumPolicy {
 public:
  explicit BackupPolicy(uint32_t backups) : backups_(backups) {}

  PushFate FateOf(uint32_t virtual_worker, uint64_t clock,
                  const SegmentClocks& segment) const override {
    if (clock == segment.version) return PushFate::kTake;
    if (clock > segment.version) return PushFate::kImpossible;
    return segment.applied->Has(virtual_worker, clock) == AppliedClocks::Answer::kNot
               ? PushFate::kDropped
               : PushFate::kCommitted;
  }
  bool Closes(uint32_t arrived, uint32_t live) const override {
    return arrived >= (live > backups_ ? live - backups_ : 1);
  }
  uint32_t spare() const override { return backups_; }

 private:
  const uint32_t backups_;
};

}  // namespace

std::unique_ptr<const SyncPolicy> MakeBackupPolicy(const SyncConfig& sync) {
  return std::make_unique<const BackupPolicy>(sync.backups());
}

}  // namespace tug
