// SPDX-License-Identifier: Apache-2.0
// Replaces gpu_peers_nccl.cc in tests: the threads of the GPUs meet, and each adds up its part in
// rank order.
#include <cstring>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "kernels/emulation/cuda_emulation_memory.h"
#include "model/gpu/gpu_peers.h"

namespace tug {
namespace {

using kernels::cuda::Stream;
using kernels::emulation::DeviceAccess;

// A GPU's call: its memory and the operation.
struct Call {
  const char* name = "";
  std::byte* data = nullptr;
  uint64_t part_bytes = 0;
};

class Group final : public GpuGroup {
 public:
  explicit Group(uint32_t world) : calls_(world) {}

  std::unique_ptr<GpuPeers> NewPeers(uint32_t rank, int gpu) override;
  void Abort() override {
    absl::MutexLock lock(&mutex_);
    aborted_ = true;
  }

  uint32_t world() const { return static_cast<uint32_t>(calls_.size()); }
  // Waits for all GPUs and returns their calls. INTERNAL: the calls differ.
  absl::StatusOr<std::vector<Call>> Meet(uint32_t rank, const Call& call) {
    absl::MutexLock lock(&mutex_);
    const uint64_t meeting = meeting_;
    calls_[rank] = call;
    if (++came_ == world()) {
      came_ = 0;
      met_ = calls_;
      ++meeting_;
    }
    const auto is_over = [this, meeting]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return aborted_ || meeting_ != meeting;
    };
    mutex_.Await(absl::Condition(&is_over));
    if (aborted_) return absl::CancelledError("the group of GPUs was aborted");
    for (const Call& other : met_) {
      if (std::strcmp(other.name, call.name) == 0 && other.part_bytes == call.part_bytes) continue;
      return absl::InternalError(absl::StrCat("GPU ", rank, " of a group calls ", call.name, " of ",
                                              call.part_bytes, " bytes, another ", other.name,
                                              " of ", other.part_bytes));
    }
    return met_;
  }

 private:
  absl::Mutex mutex_;
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Call> calls_;                        // by rank; elements guarded by mutex_
  std::vector<Call> met_ ABSL_GUARDED_BY(mutex_);  // calls of the last meeting
  uint32_t came_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t meeting_ ABSL_GUARDED_BY(mutex_) = 0;
};

class Peers final : public GpuPeers {
 public:
  Peers(Group& group, uint32_t rank) : GpuPeers(rank, group.world()), group_(group) {}

  absl::Status Join() override { return group_.Meet(rank(), {.name = "Join"}).status(); }

  absl::Status ReduceScatter(float* data, uint64_t count, const Stream& stream) override {
    ASSIGN_OR_RETURN(const std::vector<Call> calls,
                     Begin("ReduceScatter", data, count * sizeof(float), stream));
    {
      const DeviceAccess access;
      for (uint64_t i = rank() * count; i < (rank() + 1) * count; ++i) {
        float sum = 0;
        for (const Call& call : calls) sum += reinterpret_cast<const float*>(call.data)[i];
        data[i] = sum;
      }
    }
    return End();
  }
  absl::Status AllGather(std::byte* data, uint64_t bytes, const Stream& stream) override {
    ASSIGN_OR_RETURN(const std::vector<Call> calls, Begin("AllGather", data, bytes, stream));
    {
      const DeviceAccess access;
      for (size_t from = 0; from < calls.size(); ++from) {
        if (from == rank()) continue;
        std::memcpy(data + from * bytes, calls[from].data + from * bytes, bytes);
      }
    }
    return End();
  }

 private:
  // The emulated work runs at once, after all work on the stream.
  absl::StatusOr<std::vector<Call>> Begin(const char* name, void* data, uint64_t part_bytes,
                                          const Stream& stream) {
    if (!kernels::emulation::IsDeviceRange(data, part_bytes * world())) {
      return absl::InternalError(
          absl::StrCat(name, ": the range is not entirely in the memory of this GPU"));
    }
    RETURN_IF_ERROR(stream.Synchronize());
    return group_.Meet(
        rank(), {.name = name, .data = static_cast<std::byte*>(data), .part_bytes = part_bytes});
  }
  // No GPU continues before all have read.
  absl::Status End() { return group_.Meet(rank(), {.name = "end"}).status(); }

  Group& group_;
};

std::unique_ptr<GpuPeers> Group::NewPeers(uint32_t rank, int) {
  return std::make_unique<Peers>(*this, rank);
}

}  // namespace

std::unique_ptr<GpuGroup> NewGpuGroup(uint32_t world) { return std::make_unique<Group>(world); }

}  // namespace tug
