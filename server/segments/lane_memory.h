// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SEGMENTS_LANE_MEMORY_H_
#define TUG_SERVER_SEGMENTS_LANE_MEMORY_H_

// Allocates and counts a lane's memory for weights and optimizer state.
//
// Weights that are sent in place lie in memory of the transport, so that workers on this host read
// them directly; the rest is private to the process. With placement.offload_dir all of it lies in
// an unnamed file in that folder, mapped into memory (ZeRO-Infinity: Rajbhandari et al. 2021),
// which the kernel pages out and in as memory gets scarce. Other processes cannot read that file:
// weights for workers on this host are copied.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/memory/lease.h"
#include "base/memory/send_buffers.h"
#include "base/memory/shared_arena.h"

namespace tug {

// Current and peak bytes. Thread-safe.
class ByteCount {
 public:
  void Add(uint64_t bytes);
  void Subtract(uint64_t bytes) { now_ -= bytes; }
  uint64_t now() const { return now_; }
  uint64_t most() const { return most_; }

 private:
  std::atomic<uint64_t> now_ = 0;
  std::atomic<uint64_t> most_ = 0;
};

// Thread-safe, except Offload. Buffers may outlive the lane.
class LaneMemory : public std::enable_shared_from_this<LaneMemory> {
 public:
  enum class Use {
    kSentWeights,  // weights in the format of pulls
    kWeights,      // other copies of weights
    kState,        // an optimizer's m or v
    kSnapshot,     // copy of state for a checkpoint; not counted
  };

  // `new_buffer`: allocates weights that are sent; null: the heap.
  static std::shared_ptr<LaneMemory> Create(SendBuffers::NewBuffer new_buffer = nullptr);

  // Allocates later buffers in a file in `folder`, which reserves `reserve_bytes` and extra room
  // for rounding sizes up. Errors: those of SharedRegion::CreateInFile.
  absl::Status Offload(const std::string& folder, uint64_t reserve_bytes);
  bool offloads() const { return files_ != nullptr; }

  // kState: zeros. Others: contents unspecified.
  AlignedBuffer New(Use use, size_t size_bytes);

  // Bytes of live buffers, in files or not.
  const ByteCount& weights() const { return weights_; }
  const ByteCount& state() const { return state_; }
  // The first error that kept a buffer out of the file, so that it lies in memory.
  absl::Status failure() const;

 private:
  // Keeps the memory of a buffer alive, and counts it.
  struct Counted;

  explicit LaneMemory(SendBuffers::NewBuffer new_buffer) : new_buffer_(std::move(new_buffer)) {}
  std::shared_ptr<AlignedBuffer> Allocate(Use use, size_t size_bytes);
  ByteCount* CountOf(Use use);

  const SendBuffers::NewBuffer new_buffer_;
  std::shared_ptr<SharedArena> files_;  // null: none
  ByteCount weights_;
  ByteCount state_;
  mutable absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tug

#endif  // TUG_SERVER_SEGMENTS_LANE_MEMORY_H_
