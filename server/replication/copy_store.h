// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_REPLICATION_COPY_STORE_H_
#define TUG_SERVER_REPLICATION_COPY_STORE_H_

// Replicas of segments that other lanes own (replication.h): the replica's side. A replica has the
// owner's state, including weights of two versions if pushes are summed, so that it can replace the
// owner; until then it serves no pulls.
//
//   1. kUpdate at the replica's own version is applied at once, by the same optimizer. At any other
//      version it has no effect. So updates are applied strictly in order, once each.
//   2. kCopy overwrites the replica. A replica that follows its owner, since it has applied a kCopy
//      or kUpdate, ignores one of its own version or older: that message was delayed.
//   3. In every case the replica answers with its version (kCopied).
//
// With pulls of changes a replica computes the same shadow (shadow.h) as its owner.
//
// Memory in bytes per parameter: 12 with Adam's m and v; plus the previous version if pushes are
// summed: 4 (2 with bf16 pulls, 1.02 with int8, 8 with changes, for the shadows of both versions).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory/lease.h"
#include "blocks/segment_table.h"
#include "optimizer/optimizer.h"
#include "proto/wire.h"
#include "server/replication/copy_payload.h"
#include "server/segments/held_segment.h"
#include "server/segments/lane_memory.h"
#include "server/segments/shadow.h"

namespace tug {

// Not thread-safe: owned by one lane.
class CopyStore {
 public:
  struct Options {
    uint64_t start_version = 0;   // of the job
    uint32_t counted_clocks = 0;  // virtual workers (SSP, ASP); else 0
    Codec pull_codec = Codec::kNone;
    ShadowMaker::Options shadow = {};  // with pulls of changes
    bool leave_out_update = false;     // see ShardOptions
    std::shared_ptr<LaneMemory> memory = LaneMemory::Create();
  };
  // All replicas start at the start version with zeros, to be filled in. `copied`: segment ids,
  // ascending. REQUIRES: `table` and `optimizer` outlive it.
  CopyStore(Options options, const SegmentTable& table, std::span<const uint32_t> copied,
            const Optimizer& optimizer);

  const std::vector<uint32_t>& segments() const { return copied_; }
  bool has(uint32_t segment) const { return copies_[segment] != nullptr; }
  uint64_t version(uint32_t segment) const { return copies_[segment]->version; }

  // State of the start version, to be filled in.
  std::span<float> weights(uint32_t segment);
  std::span<float> m(uint32_t segment);  // empty if the optimizer keeps none
  std::span<float> v(uint32_t segment);
  // SSP, ASP: sets the segment's version and clocks.
  void SetClocks(uint32_t segment, uint64_t version, std::span<const uint64_t> clocks);

  // Discards the state of all replicas.
  void Forget();
  void Forget(uint32_t segment) { copies_[segment]->version = kNoVersion; }
  // Moves the replica out of `before`; without one there, it has no state.
  void InheritFrom(CopyStore& before, uint32_t segment);
  // Copies state that the lane already has.
  void Set(uint32_t segment, const HeldSegment& held);
  // None: no state yet.
  std::optional<HeldSegment> Held(uint32_t segment) const;

  // kUpdate and kCopy, as above. False: the payload is invalid.
  bool OnUpdate(uint32_t segment, uint64_t version, uint32_t virtual_worker,
                std::span<const std::byte> payload);
  bool OnCopy(uint32_t segment, uint64_t version, std::span<const std::byte> payload);

 private:
  struct Copy {
    uint64_t version = 0;
    bool follows = false;
    bool has_previous = false;
    bool has_shadow = false;  // false: the shadow equals the weights (start version)
    AlignedBuffer weights;
    // Previous version, as pulls get it. Unused under SSP and ASP.
    AlignedBuffer previous;
    AlignedBuffer shadow;  // with pulls of changes
    AlignedBuffer m;
    AlignedBuffer v;
    std::vector<uint64_t> clocks;
    NormEntry norm;
  };

  bool shadows() const { return options_.pull_codec == Codec::kChanges; }
  void Apply(uint32_t segment, Copy& copy, const SegmentUpdate& update);
  // Computes the shadow of version + 1 from its weights.
  void MakeShadow(uint32_t segment, Copy& copy);
  // Makes the current weights the previous version; returns where to read them and where to write
  // the next ones.
  UpdateSpans Turn(Copy& copy) const;

  const Options options_;
  const SegmentTable& table_;
  const Optimizer& optimizer_;
  const CopyShape shape_;
  const std::vector<uint32_t> copied_;
  std::vector<std::unique_ptr<Copy>> copies_;  // by segment id; null: no replica here
  ShadowMaker shadow_maker_;
  std::vector<std::byte> changes_;  // scratch for one segment; replicas send no changes
};

}  // namespace tug

#endif  // TUG_SERVER_REPLICATION_COPY_STORE_H_
