// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_GPU_GPU_PEERS_H_
#define TUG_MODEL_GPU_GPU_PEERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "kernels/cuda/device/device.h"

namespace tug {

// One GPU's end of a group of GPUs of a host that compute one model together. Used by the thread of
// that GPU, with the GPU selected. All GPUs make the same calls in the same order; each GPU
// executes them one after another, whichever streams they are queued on.
//
// Errors: those of the GPU or of the connection; CANCELLED (GpuGroup::Abort).
class GpuPeers {
 public:
  virtual ~GpuPeers() = default;
  GpuPeers(const GpuPeers&) = delete;
  GpuPeers& operator=(const GpuPeers&) = delete;

  // Connects the GPUs; waits for all of them. Call before the others.
  virtual absl::Status Join() = 0;

  // These calls queue work on the stream and return. `data`, in this GPU's memory, has world()
  // consecutive parts; part rank() is this GPU's.
  //   ReduceScatter  parts of `count` floats: this GPU's becomes the sum over all GPUs; the others
  //                  become unspecified
  //   AllGather      parts of `bytes`, a multiple of 4: each becomes its own GPU's part
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

// All GPUs of a group, within one process. Thread-safe.
class GpuGroup {
 public:
  virtual ~GpuGroup() = default;

  // Makes the end of GPU number `gpu` of the host, as `rank`. Call once per rank. Destroy it before
  // the group, on the thread of its GPU.
  virtual std::unique_ptr<GpuPeers> NewPeers(uint32_t rank, int gpu) = 0;
  // Ends queued work and waits for other GPUs. All later calls fail, and the outputs of ended ones
  // are undefined.
  virtual void Abort() = 0;
};

// Makes a group over NCCL, in builds with --config=cuda. NCCL reads another GPU's memory directly
// if it can, else it copies through host memory. The same GPUs in the same order give the same bits
// if NCCL chooses the same algorithm, as it does for the same version, machine and environment.
std::unique_ptr<GpuGroup> NewGpuGroup(uint32_t world);

}  // namespace tug

#endif  // TUG_MODEL_GPU_GPU_PEERS_H_
