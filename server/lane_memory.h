#ifndef TUG_SERVER_LANE_MEMORY_H_
#define TUG_SERVER_LANE_MEMORY_H_

// Memory of a lane's weights and optimizer state: where it comes from, and how much of it there is.
//
// Weights that are sent where they lie are in memory of the transport, so that workers on this host
// read them in place; the rest is the process's own. With placement.offload_dir all of it lies in a
// file without a name in that folder, mapped into memory (ZeRO-Infinity: Rajbhandari et al. 2021),
// which the kernel writes out and reads again as memory gets scarce. Other processes cannot read
// that: what goes to a worker on this host is copied then.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/lease.h"
#include "base/shared_arena.h"
#include "exchange/send_buffers.h"

namespace tug {

// Bytes that there are, and the most that there were at a time. Thread-safe.
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

// Thread-safe, but for Offload. Buffers may outlive the lane.
class LaneMemory : public std::enable_shared_from_this<LaneMemory> {
 public:
  enum class Use {
    kSentWeights,  // weights in the format of pulls
    kWeights,      // other copies of them
    kState,        // an optimizer's m or v
    kSnapshot,     // of state that is on its way into a checkpoint; not counted
  };

  // `new_buffer`: memory of weights that are sent; none for the heap.
  static std::shared_ptr<LaneMemory> Create(SendBuffers::NewBuffer new_buffer = nullptr);

  // From now on buffers lie in a file in `folder`, of `reserve_bytes` at first, room included that
  // rounding their sizes up takes. Errors: as SharedRegion::CreateInFile.
  absl::Status Offload(const std::string& folder, uint64_t reserve_bytes);
  bool offloads() const { return files_ != nullptr; }

  // kState: zeros. Others: contents unspecified.
  AlignedBuffer New(Use use, size_t size_bytes);

  // Of buffers that live, in files or not.
  const ByteCount& weights() const { return weights_; }
  const ByteCount& state() const { return state_; }
  // Why a buffer did not get its place in the file, and lies in memory: the first time.
  absl::Status failure() const;

 private:
  // What keeps a buffer: the memory it lies in, and its place in a count.
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

#endif  // TUG_SERVER_LANE_MEMORY_H_
