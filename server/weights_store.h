#ifndef TUG_SERVER_WEIGHTS_STORE_H_
#define TUG_SERVER_WEIGHTS_STORE_H_

// A lane's weights and optimizer state, and the copies that pulls are answered from, in place.
//
// Consecutive owned segments of a block form a run, whose weights lie in one buffer, so that a
// partition is sent from one place. Pulls are answered at the newest version and at the one before,
// so there are two copies by version, version v in copy v % 2:
//   FP32 pulls: the weights themselves alternate between two copies; an update reads the one and
//     writes the other.                                                     8 bytes a parameter
//   bf16 and int8 pulls: the weights are updated in place, and two encoded copies alternate; an
//     update writes what pulls get beside (exchange/weights_payload.h).
//                                                          4 + 4, 4 + 2.03 bytes a parameter
//   pulls of changes: the same with the shadow in place of encoded copies, FP32; and what has
//     changed (shadow.h), of which an answer is a copy.       4 + 8, and two frames of changes
// With PULL_AUTO there is what FP32 pulls have, and an int8 answer is a copy made when it is given.
// A copy that somebody still reads when its turn comes is left to its readers, and a fresh one is
// made.
//
// Where every push is an update, versions of a run's segments may be any number apart. There is one
// copy then, updated in place; an answer is a copy of its part, made when it is given.
//                                                                          4 bytes a parameter
//
// REQUIRES, with two copies: versions of a run's segments differ by at most one.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/lease.h"
#include "exchange/segment_table.h"
#include "exchange/send_buffers.h"
#include "exchange/weights_payload.h"
#include "kernels/bf16.h"
#include "proto/wire.h"
#include "server/held_segment.h"
#include "server/lane_memory.h"
#include "server/shadow.h"

namespace tug {

// Not thread-safe: owned by one lane. Leases may be released on any thread.
class WeightsStore {
 public:
  struct Options {
    uint64_t start_version = 0;
    Codec pull_codec = Codec::kNone;   // of WeightsCodecOf
    bool one_copy = false;             // update per push; not with pulls of changes
    ShadowMaker::Options shadow = {};  // with pulls of changes
    // Of buffers for answers that are not sent in place, to be used again: with one copy all are
    // such, with pulls of changes most, with PULL_AUTO (copies made as int8 for each worker that
    // asks) those over links, else those of runs.
    uint64_t keep_bytes = uint64_t{4} << 20;
    bool keeps_m = true;  // what the optimizer keeps
    bool keeps_v = true;
    SendBuffers::NewBuffer new_buffer;  // memory that answers are sent from, which are copies
    std::shared_ptr<LaneMemory> memory = LaneMemory::Create();
  };
  // `owned`: segment ids, ascending. REQUIRES: `table` outlives the store.
  WeightsStore(const SegmentTable& table, std::span<const uint32_t> owned, Options options);

  // Whether every answer is a copy, since weights change in place.
  bool one_copy() const { return options_.one_copy; }

  // At the segment's version, which the caller knows. Weights of the start version are zero, or
  // unspecified, until filled in; m and v are zero, or empty if they are not kept.
  std::span<float> weights(uint32_t segment, uint64_t version);
  std::span<float> m(uint32_t segment);
  std::span<float> v(uint32_t segment);
  // They stay as they are while the lease lives.
  Lease LeaseWeights(uint32_t segment, uint64_t version);

  // The weights of the start version are filled in. Before Read and the first Update.
  void Start();

  // In place of filling in and Start: what the lane has of its segments, in the middle of a
  // timeline. `held`: of each of `owned`, in that order. Runs that `before` has too are not copied
  // but taken from there; null: there is none. False if versions of a run lie too far apart, or of
  // one that is further the version before is lacking: no lane can have left them so.
  bool TakeUp(std::span<const HeldSegment> held, WeightsStore* before);
  // Weights, m, v and the version before of a segment at its version, which the caller knows.
  HeldSegment Held(uint32_t segment, uint64_t version) const;

  struct Update {
    std::span<const float> weights_in;
    std::span<float> weights_out;  // weights_in itself, or apart from it
    std::span<float> m;
    std::span<float> v;
    std::span<std::byte> encoded_out;  // what pulls get of weights_out; empty with FP32 pulls
    // The same, with bf16 pulls: who makes the weights writes it too.
    std::span<kernels::Bf16> bf16_out;
    // With pulls of changes: of what shadow `version` of `segment` is made, and where what changes
    // goes.
    std::span<const float> shadow_in;
    std::span<std::byte> changes_out;
    uint32_t segment = 0;
    uint64_t version = 0;
  };
  // Where to make version + 1 of a segment out of `version`.
  Update BeginUpdate(uint32_t segment, uint64_t version);
  // weights_out is made: writes encoded_out, where the optimizer has not.
  void EndUpdate(const Update& update);
  // In place of making weights_out: the same weights as before.
  void CopyWeights(const Update& update);

  // Whether all segments of the run have at least this version. REQUIRES: two copies.
  bool RunIsAt(uint32_t segment, uint64_t version) const;

  // The payload that answers a pull of segments [first, first + count), of one run, at `version`,
  // which all of them have or had. `newest`: none of them has a later one. (With one copy: as they
  // are, whatever their versions.) `runs`: for kRuns, the
  // list from the pull, checked. Nothing if that version is not kept any more (always of the two
  // newest in the format of the pulls; others beside encoded ones only the newest).
  //   kNone, kBf16, kInt8   in place if that is the format of the pulls; with pulls of changes they
  //                         are of the shadow, kNone in place
  //   kRuns                 FP32 values, the same as would be had from a whole pull
  //   kChanges              REQUIRES: ChangesBytes
  std::optional<Lease> Read(uint32_t first, uint32_t count, uint64_t version, bool newest,
                            Codec codec, std::span<const std::byte> runs);
  // Of the changes that make `version` of the version before, of segments [first, first + count) of
  // one run. Nothing if those of one of them are not there, or all of the weights would be no more.
  std::optional<uint64_t> ChangesBytes(uint32_t first, uint32_t count, uint64_t version) const;

 private:
  // Two buffers by version.
  struct Copies {
    std::shared_ptr<AlignedBuffer> at[2];  // shared with messages on their way
    uint64_t version[2] = {0, 0};

    const std::shared_ptr<AlignedBuffer>* Find(uint64_t v) const {
      return at[v % 2] != nullptr && version[v % 2] == v ? &at[v % 2] : nullptr;
    }
  };
  struct Run {
    uint64_t begin = 0;  // elements, within the block
    uint64_t end = 0;
    Copies weights;
    Copies encoded;  // or the shadow; none with FP32 pulls
    uint64_t encoded_bytes = 0;
    Copies changes;  // with pulls of changes: that made the shadow of its version
    uint64_t changes_bytes = 0;
    AlignedBuffer m;
    AlignedBuffer v;
    uint64_t newest = 0;  // version of the segment that is furthest
    uint32_t segments = 0;
    uint32_t at_newest = 0;

    uint64_t elements() const { return end - begin; }
  };

  using Use = LaneMemory::Use;
  std::shared_ptr<AlignedBuffer> NewCopy(Use use, size_t size_bytes) const;
  Run& RunOf(uint32_t segment) { return runs_[run_of_segment_[segment]]; }
  const Run& RunOf(uint32_t segment) const { return runs_[run_of_segment_[segment]]; }
  // A segment's part of something that has an entry per element of the run.
  template <typename T>
  std::span<T> Part(std::span<T> of_run, uint32_t segment) const {
    const Segment& s = table_.segment(segment);
    return of_run.subspan(s.begin - RunOf(segment).begin, s.elements());
  }
  // What pulls get of it, in a copy of its run.
  std::span<std::byte> EncodedPart(AlignedBuffer& of_run, uint32_t segment) const;
  // Of one segment, in a copy of its run.
  std::span<std::byte> ChangesPart(AlignedBuffer& of_run, uint32_t segment) const;
  bool shadows() const { return options_.pull_codec == Codec::kChanges; }
  // Whether what pulls get lies apart from the weights.
  bool encodes() const { return options_.pull_codec != Codec::kNone; }
  // Room for changes: of its newest version there are none.
  void MakeChanges(Run& run, uint64_t newest) const;
  void Encode(const Update& update);
  // The run that begins with this segment and has this extent; null if there is none.
  Run* FindRun(uint32_t first_segment, const Run& extent);
  // Of one run. `held`: of the segments from owned_[first] on.
  bool TakeUpRun(Run& run, size_t first, std::span<const HeldSegment> held);
  // The copy that `version` is to be written to; the first segment of a run to come there takes it
  // from version - 2.
  AlignedBuffer& Writable(Copies& copies, uint64_t version, size_t size_bytes);
  // As Writable, but the copy of version - 1 itself unless somebody reads it.
  AlignedBuffer& WritableInPlace(Copies& copies, uint64_t version, size_t size_bytes);
  // Of segments [first, first + count), copied or encoded.
  Lease ReadCopy(uint32_t first, uint32_t count, std::span<const float> floats, Codec codec);
  std::optional<Lease> ReadRuns(std::span<const float> floats, std::span<const std::byte> list);
  Lease ReadChanges(uint32_t first, uint32_t count, uint64_t version);
  // As who pulls them decodes them. Valid until the next call.
  std::span<const float> Decoded(uint32_t first, uint32_t count, uint64_t elements,
                                 std::span<const std::byte> encoded);

  const SegmentTable& table_;
  const Options options_;
  const Codec encoded_as_;  // format of encoded copies
  const std::vector<uint32_t> owned_;
  std::vector<Run> runs_;
  std::vector<uint32_t> run_of_segment_;  // by segment id; unspecified for others' segments
  std::vector<uint64_t> encoded_begin_;   // by segment id: bytes, within the run's encoded copy
  std::vector<uint64_t> changes_begin_;   // the same of changes
  SendBuffers send_buffers_;
  std::vector<float> decoded_;
  ShadowMaker shadow_maker_;
};

}  // namespace tug

#endif  // TUG_SERVER_WEIGHTS_STORE_H_
