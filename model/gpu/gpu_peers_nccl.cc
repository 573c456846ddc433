// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "collective/nccl_group.h"
#include "model/gpu/gpu_peers.h"

namespace tug {
namespace {

using kernels::cuda::Stream;

// Limit for all GPUs to join; in later calls they have all joined already.
constexpr absl::Duration kTimeout = absl::Minutes(1);

class Group final : public GpuGroup {
 public:
  explicit Group(uint32_t world) : members_(world, nullptr) {}

  std::unique_ptr<GpuPeers> NewPeers(uint32_t rank, int gpu) override;
  void Abort() override {
    absl::MutexLock lock(&mutex_);
    aborted_ = true;
    for (NcclGroup* const group : members_) {
      if (group != nullptr) group->Abort();
    }
  }

  uint32_t world() const { return static_cast<uint32_t>(members_.size()); }
  // Rank 0 makes the id, with its GPU selected; the others wait.
  absl::StatusOr<NcclGroup::Id> ShareId(uint32_t rank) {
    if (rank == 0) {
      absl::StatusOr<NcclGroup::Id> made = NcclGroup::MakeId();
      absl::MutexLock lock(&mutex_);
      id_ = std::move(made);
    }
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](Group* group) { return group->aborted_ || !absl::IsUnknown(group->id_.status()); },
        this));
    if (aborted_) return absl::CancelledError("the group of GPUs was aborted");
    return id_;
  }
  // Call before the group joins, so that Abort ends its wait for the others; with null before the
  // group is destroyed.
  void SetMember(uint32_t rank, NcclGroup* group) {
    absl::MutexLock lock(&mutex_);
    members_[rank] = group;
    if (aborted_ && group != nullptr) group->Abort();
  }

 private:
  absl::Mutex mutex_;
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusOr<NcclGroup::Id> id_ ABSL_GUARDED_BY(mutex_);  // UNKNOWN: not made yet
  std::vector<NcclGroup*> members_;                           // by rank; elements guarded by mutex_
};

// NCCL executes the calls of a communicator one after another, whichever streams they are on. With
// a single communicator for weights and gradients, GPUs cannot wait for each other in different
// orders.
class Peers final : public GpuPeers {
 public:
  Peers(Group& group, uint32_t rank, int gpu)
      : GpuPeers(rank, group.world()), group_(group), gpu_(gpu) {}
  ~Peers() override { group_.SetMember(rank(), nullptr); }

  absl::Status Join() override {
    ASSIGN_OR_RETURN(const NcclGroup::Id id, group_.ShareId(rank()));
    nccl_ = std::make_unique<NcclGroup>(
        NcclGroupOptions{.rank = rank(), .world = world(), .device = gpu_, .timeout = kTimeout});
    group_.SetMember(rank(), nccl_.get());
    return nccl_->Join(id);
  }
  absl::Status ReduceScatter(float* data, uint64_t count, const Stream& stream) override {
    return nccl_->ReduceScatter(data, data + rank() * count, count, ElementType::kFp32,
                                stream.handle());
  }
  // Nothing is added, so float stands for any 4 bytes.
  absl::Status AllGather(std::byte* data, uint64_t bytes, const Stream& stream) override {
    TUG_CHECK_EQ(bytes % sizeof(float), 0u);
    return nccl_->AllGather(data + rank() * bytes, data, bytes / sizeof(float), ElementType::kFp32,
                            stream.handle());
  }

 private:
  Group& group_;
  const int gpu_;
  std::unique_ptr<NcclGroup> nccl_;
};

std::unique_ptr<GpuPeers> Group::NewPeers(uint32_t rank, int gpu) {
  return std::make_unique<Peers>(*this, rank, gpu);
}

}  // namespace

std::unique_ptr<GpuGroup> NewGpuGroup(uint32_t world) { return std::make_unique<Group>(world); }

}  // namespace tug
