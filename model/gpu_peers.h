#ifndef TUG_MODEL_GPU_PEERS_H_
#define TUG_MODEL_GPU_PEERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "kernels/device.h"

namespace tug {

// The GPUs of a host that compute one model together, as one of them sees them. For the thread of
// that GPU, which it uses. All of them make the same calls in the same order; on a GPU they are
// carried out one after another, whichever streams they are queued on.
//
// Errors: those of the GPU or of what connects them; CANCELLED (GpuGroup::Abort).
class GpuPeers {
 public:
  virtual ~GpuPeers() = default;
  GpuPeers(const GpuPeers&) = delete;
  GpuPeers& operator=(const GpuPeers&) = delete;

  // Connects them; waits for all. Before the first call of those below.
  virtual absl::Status Join() = 0;

  // Queued on the stream when they return. `data`, in this GPU's memory, has world() parts, one
  // behind another; this GPU's is that of rank().
  //   ReduceScatter  parts of `count` floats: this GPU's becomes the sum over all; the others are
  //                  not what they were
  //   AllGather      parts of `bytes`, a multiple of 4: each becomes what it is on its own GPU
  virtual absl::Status ReduceScatter(float* data, uint64_t count,
                                     const kernels::cuda::Stream& stream) = 0;
  virtual absl::Status AllGather(std::byte* data, uint64_t bytes,
                                 const kernels::cuda::Stream& stream) = 0;

  uint32_t rank() const { return rank_; }
  uint32_t world() const { return world_; }

 protected:
  GpuPeers(uint32_t rank, uint32_t world) : rank_(rank), world_(world) {}

 private:
  const uint32_t rank_, world_;
};

// All of them, of one process. Thread-safe.
class GpuGroup {
 public:
  virtual ~GpuGroup() = default;

  // What GPU number `gpu` of the host sees of it, as that of the rank; once for each rank. It goes
  // before the group does, on the thread of its GPU.
  virtual std::unique_ptr<GpuPeers> NewPeers(uint32_t rank, int gpu) = 0;
  // Ends what is queued and whoever waits for another GPU: from here on all calls are errors, and
  // what they were to write means nothing.
  virtual void Abort() = 0;
};

// By NCCL, in builds with --config=cuda. NCCL reads the memory of another GPU where it may, else it
// copies through the host's. The same GPUs in the same order give the same bits, as long as NCCL
// chooses the same algorithm: it does for the same version, machine and environment.
std::unique_ptr<GpuGroup> NewGpuGroup(uint32_t world);

}  // namespace tug

#endif  // TUG_MODEL_GPU_PEERS_H_
