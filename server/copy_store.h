#ifndef TUG_SERVER_COPY_STORE_H_
#define TUG_SERVER_COPY_STORE_H_

// The segments that a lane keeps a copy of, for other lanes that own them (replication.h): the
// copy's side. A copy has what its owner has, weights of two versions where pushes are summed, so
// that it can take the owner's place; it serves nobody until then.
//
//   1. kUpdate at the copy's own version is applied, by the same optimizer, at once. At any other
//      version it changes nothing. So updates are applied strictly in order, each once.
//   2. kCopy overwrites what there is. A copy that follows its owner, since it has taken a kCopy or
//      a kUpdate from it, takes none of its own version or before: that is a message which was on
//      its way for long.
//   3. Whatever came: the copy answers with the version that it has now (kCopied).
//
// With pulls of changes a copy makes the shadow (shadow.h) that its owner makes.
//
// Memory, bytes a parameter: 12 with Adam's m and v, and 4 (2 with bf16 pulls, 1.02 with int8, 8
// with the shadows of both versions) for the version before where pushes are summed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/lease.h"
#include "exchange/segment_table.h"
#include "optimizer/optimizer.h"
#include "proto/wire.h"
#include "server/copy_payload.h"
#include "server/held_segment.h"
#include "server/lane_memory.h"
#include "server/shadow.h"

namespace tug {

// Not thread-safe: owned by one lane.
class CopyStore {
 public:
  struct Options {
    uint64_t start_version = 0;   // of the job
    uint32_t counted_clocks = 0;  // virtual workers, where every push is an update; else 0
    Codec pull_codec = Codec::kNone;
    ShadowMaker::Options shadow = {};  // with pulls of changes
    bool leave_out_update = false;     // see ShardOptions
    std::shared_ptr<LaneMemory> memory = LaneMemory::Create();
  };
  // All at the start version, with zeros, to be filled in. `copied`: segment ids, ascending.
  // REQUIRES: `table` and `optimizer` outlive it.
  CopyStore(Options options, const SegmentTable& table, std::span<const uint32_t> copied,
            const Optimizer& optimizer);

  const std::vector<uint32_t>& segments() const { return copied_; }
  bool has(uint32_t segment) const { return copies_[segment] != nullptr; }
  uint64_t version(uint32_t segment) const { return copies_[segment]->version; }

  // To fill in the start version.
  std::span<float> weights(uint32_t segment);
  std::span<float> m(uint32_t segment);  // empty if there is none
  std::span<float> v(uint32_t segment);
  // Where every push is an update: the segment's version, and by virtual worker its clocks.
  void SetClocks(uint32_t segment, uint64_t version, std::span<const uint64_t> clocks);

  // Has nothing any more, of any segment.
  void Forget();
  void Forget(uint32_t segment) { copies_[segment]->version = kNoVersion; }
  // What `before` has of it, which has no use for it any more; nothing if it has no copy of it.
  void TakeFrom(CopyStore& before, uint32_t segment);
  // What the lane has of it from before.
  void Set(uint32_t segment, const HeldSegment& held);
  // Nothing if it has nothing.
  std::optional<HeldSegment> Held(uint32_t segment) const;

  // kUpdate and kCopy, as above. False if the payload makes no sense.
  bool OnUpdate(uint32_t segment, uint64_t version, uint32_t virtual_worker,
                std::span<const std::byte> payload);
  bool OnCopy(uint32_t segment, uint64_t version, std::span<const std::byte> payload);

 private:
  struct Copy {
    uint64_t version = 0;
    bool follows = false;
    bool has_previous = false;
    bool has_shadow = false;  // else it is the weights: of the start version
    AlignedBuffer weights;
    // Of the version before, as pulls get them. None where every push is an update.
    AlignedBuffer previous;
    AlignedBuffer shadow;  // with pulls of changes
    AlignedBuffer m;
    AlignedBuffer v;
    std::vector<uint64_t> clocks;
    NormEntry norm;
  };

  bool shadows() const { return options_.pull_codec == Codec::kChanges; }
  void Apply(uint32_t segment, Copy& copy, const SegmentUpdate& update);
  // The weights are made, of version + 1.
  void MakeShadow(uint32_t segment, Copy& copy);
  // The weights there are become those of the version before; returns where the next ones go, and
  // where they are read.
  UpdateSpans Turn(Copy& copy) const;

  const Options options_;
  const SegmentTable& table_;
  const Optimizer& optimizer_;
  const CopyShape shape_;
  const std::vector<uint32_t> copied_;
  std::vector<std::unique_ptr<Copy>> copies_;  // by segment id; null: no copy here
  ShadowMaker shadow_maker_;
  std::vector<std::byte> changes_;  // of a segment: who has a copy sends none
};

}  // namespace tug

#endif  // TUG_SERVER_COPY_STORE_H_
