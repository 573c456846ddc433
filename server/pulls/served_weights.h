// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_PULLS_SERVED_WEIGHTS_H_
#define TUG_SERVER_PULLS_SERVED_WEIGHTS_H_

// Weights that a lane last served to each worker, under SSP and ASP, where weights have changed by
// the time the gradient arrives:
//  - the weights themselves, for sync.delay_compensation: 4 bytes per parameter and worker;
//  - whether the version a push names holds for each of its segments, for sync.record.
//
// A push names one version, the lowest of its segments. It is exact for all of them if one answer
// brought them all at one version. That is so while all workers use the same partitions, since the
// segments of a partition then get the same pushes in the same order; this class verifies it. If a
// pull is answered twice (the first answer was late), the version tells which of the two the worker
// used.
//
// Weights are kept by worker, not by virtual worker: all virtual workers of a worker compute a step
// with the same weights. Allocates when a worker is served for the first time, and for the weights.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/memory/lease.h"
#include "blocks/segment_table.h"
#include "proto/wire.h"
#include "transport/transport.h"

namespace tug {

// Not thread-safe: owned by one lane.
class ServedWeights {
 public:
  struct Options {
    bool keep_weights = false;
    size_t max_workers = 0;  // the worker served longest ago makes room
  };
  // REQUIRES: `table` outlives it.
  ServedWeights(Options options, const SegmentTable& table) : options_(options), table_(table) {}

  // The answer to `pull` contains `segment` at `version`. `mixed`: its segments differ in version.
  void Note(const WireHeader& pull, uint32_t segment, uint64_t version, bool mixed,
            std::span<const float> weights);

  // Call in a new view: workers may begin earlier clocks than before, with other virtual workers,
  // and some have left. Frees the weights.
  void Clear() { workers_.clear(); }

  // Whether the version that a push of segments [first, first + count) at `clock` names holds for
  // each of them: the last answer to its worker was for that clock, with all segments at one
  // version.
  bool IsExact(PeerId worker, uint64_t clock, uint32_t first, uint32_t count) const;
  // Weights of that version as served to the worker; empty if they are not kept.
  std::span<const float> Weights(PeerId worker, uint32_t segment, uint64_t version) const;

 private:
  struct Served {
    bool any = false;
    bool mixed = false;
    uint32_t first_segment = 0;  // first of the answer, within the block
    uint64_t clock = 0;          // clock of the pull
    uint64_t version = 0;
    AlignedBuffer weights;
  };
  struct Worker {
    std::vector<Served> segments;  // by segment id
    uint64_t served = 0;           // sequence number of the last segment served to it
  };

  Worker& WorkerOf(PeerId worker);
  const Served* Find(PeerId worker, uint32_t segment) const;

  const Options options_;
  const SegmentTable& table_;
  std::unordered_map<PeerId, std::unique_ptr<Worker>> workers_;
  uint64_t served_ = 0;
};

}  // namespace tug

#endif  // TUG_SERVER_PULLS_SERVED_WEIGHTS_H_
