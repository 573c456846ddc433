#ifndef TUG_SERVER_SERVED_WEIGHTS_H_
#define TUG_SERVER_SERVED_WEIGHTS_H_

// What a lane has served to each worker last, where every push is an update and so the weights are
// others by the time the gradient comes:
//   - the weights themselves, for sync.delay_compensation: 4 bytes a parameter and worker;
//   - whether the version that a push names is that of each of its segments, for sync.record.
//
// A push names one version, the lowest of its segments. That is exact for all of them if one answer
// brought them all, at one version: always so while all workers cut blocks into the same
// partitions, for then the segments of a partition have had the same pushes in the same order. Here
// it is checked, not believed. Where a pull is answered twice (the first answer came late), the
// version says which of the two the worker took.
//
// By worker, not by virtual worker: all virtual workers that a worker carries compute a step on the
// same weights. Allocates when a worker is served for the first time, and for the weights.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/lease.h"
#include "exchange/segment_table.h"
#include "proto/wire.h"
#include "transport/transport.h"

namespace tug {

// Not thread-safe: owned by one lane.
class ServedWeights {
 public:
  struct Options {
    bool keep_weights = false;
    size_t most_workers = 0;  // who was served longest ago makes room
  };
  // REQUIRES: `table` outlives it.
  ServedWeights(Options options, const SegmentTable& table) : options_(options), table_(table) {}

  // A segment, at `version`, is part of the answer to `pull`; `mixed`: not all of its segments are
  // at one version.
  void Note(const WireHeader& pull, uint32_t segment, uint64_t version, bool mixed,
            std::span<const float> weights);

  // Of a new view: workers may begin earlier clocks than they have, of virtual workers that were
  // others', and some may be gone. Lets go of the weights.
  void Clear() { workers_.clear(); }

  // Whether the version that a push of segments [first, first + count) at `clock` names is that of
  // each: the last answer to its worker was for that clock, and brought them all at one version.
  bool IsExact(PeerId worker, uint64_t clock, uint32_t first, uint32_t count) const;
  // The weights of that version that the worker was served; empty if they are not kept.
  std::span<const float> Weights(PeerId worker, uint32_t segment, uint64_t version) const;

 private:
  struct Served {
    bool any = false;
    bool mixed = false;
    uint32_t first_segment = 0;  // of the answer, within the block
    uint64_t clock = 0;          // that the pull was for
    uint64_t version = 0;
    AlignedBuffer weights;
  };
  struct Worker {
    std::vector<Served> segments;  // by id
    uint64_t served = 0;           // number of its last answer's segment
  };

  Worker& WorkerOf(PeerId worker);
  const Served* Find(PeerId worker, uint32_t segment) const;

  const Options options_;
  const SegmentTable& table_;
  std::unordered_map<PeerId, std::unique_ptr<Worker>> workers_;
  uint64_t served_ = 0;
};

}  // namespace tug

#endif  // TUG_SERVER_SERVED_WEIGHTS_H_
