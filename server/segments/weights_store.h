// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SEGMENTS_WEIGHTS_STORE_H_
#define TUG_SERVER_SEGMENTS_WEIGHTS_STORE_H_

// A lane's weights and optimizer state, and the copies from which pulls are answered in place.
//
// Consecutive owned segments of a block form a run, whose weights lie in one buffer, so that a
// partition is sent from one place. Pulls are answered at the newest and at the previous version,
// so there are two copies by version, version v in copy v % 2:
//   FP32 pulls: the weights alternate between two copies; an update reads one and writes the
//     other.                                                               8 bytes per parameter
//   bf16 and int8 pulls: the weights are updated in place, and two encoded copies alternate; an
//     update also writes what pulls get (blocks/weights_payload.h).
//                                                          4 + 4, 4 + 2.03 bytes per parameter
//   pulls of changes: the same with FP32 shadows instead of encoded copies, plus the changes
//     (shadow.h), of which an answer is a copy.              4 + 8, and two frames of changes
// With PULL_AUTO the store is that of FP32 pulls, and an int8 answer is a copy made on demand. A
// copy that is still being read when its turn comes is left to its readers and replaced by a new
// one.
//
// SSP, ASP: versions of a run's segments may differ by any number. There is one copy, updated in
// place; an answer is a copy of its part, made on demand.
//                                                                          4 bytes per parameter
//
// REQUIRES, with two copies: versions of a run's segments differ by at most one.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory/lease.h"
#include "base/memory/send_buffers.h"
#include "blocks/segment_table.h"
#include "blocks/weights_payload.h"
#include "kernels/bf16.h"
#include "proto/wire.h"
#include "server/segments/held_segment.h"
#include "server/segments/lane_memory.h"
#include "server/segments/shadow.h"

namespace tug {

// Not thread-safe: owned by one lane. Leases may be released on any thread.
class WeightsStore {
 public:
  struct Options {
    uint64_t start_version = 0;
    Codec pull_codec = Codec::kNone;   // from WeightsCodecOf
    bool one_copy = false;             // SSP, ASP; not with pulls of changes
    ShadowMaker::Options shadow = {};  // with pulls of changes
    // Limit on reusable buffers for answers that are not sent in place: with one copy all answers,
    // with pulls of changes most, with PULL_AUTO the int8 answers over links, else those of runs.
    uint64_t keep_bytes = uint64_t{4} << 20;
    bool keeps_m = true;  // what the optimizer keeps
    bool keeps_v = true;
    SendBuffers::NewBuffer new_buffer;  // memory that copied answers are sent from
    std::shared_ptr<LaneMemory> memory = LaneMemory::Create();
  };
  // `owned`: segment ids, ascending. REQUIRES: `table` outlives the store.
  WeightsStore(const SegmentTable& table, std::span<const uint32_t> owned, Options options);

  // Whether every answer is a copy, since weights are updated in place.
  bool one_copy() const { return options_.one_copy; }

  // State at the segment's version, which the caller knows. Weights of the start version are zero,
  // or unspecified, until filled in; m and v are zero, or empty if they are not kept.
  std::span<float> weights(uint32_t segment, uint64_t version);
  std::span<float> m(uint32_t segment);
  std::span<float> v(uint32_t segment);
  // The weights stay unchanged while the lease lives.
  Lease LeaseWeights(uint32_t segment, uint64_t version);

  // Call once the start version is filled in, before Read and the first update.
  void Start();

  // Replaces filling in and Start in the middle of a timeline. `held`: the lane's state of each of
  // `owned`, in that order. Runs that `before` has too are moved from it instead of copied;
  // `before` null: there is none. False if versions of a run are too far apart, or a newer segment
  // lacks its previous version: no lane can have left them so.
  bool RecoverState(std::span<const HeldSegment> held, WeightsStore* before);
  // State of a segment at its version, which the caller knows.
  HeldSegment Held(uint32_t segment, uint64_t version) const;

  struct Update {
    std::span<const float> weights_in;
    std::span<float> weights_out;  // the same memory as weights_in, or disjoint
    std::span<float> m;
    std::span<float> v;
    std::span<std::byte> encoded_out;  // weights_out as pulls get them; empty with FP32 pulls
    // encoded_out with bf16 pulls: the optimizer writes it with the weights.
    std::span<kernels::Bf16> bf16_out;
    // With pulls of changes: the shadow that the one of `version` of `segment` is made from, and
    // where the changes go.
    std::span<const float> shadow_in;
    std::span<std::byte> changes_out;
    uint32_t segment = 0;
    uint64_t version = 0;
  };
  // Memory for making version + 1 of a segment from `version`.
  Update BeginUpdate(uint32_t segment, uint64_t version);
  // weights_out is complete: writes encoded_out unless the optimizer has.
  void EndUpdate(const Update& update);
  // Instead of making weights_out: copies the weights unchanged.
  void CopyWeights(const Update& update);

  // Whether all segments of the run have at least this version. REQUIRES: two copies.
  bool RunIsAt(uint32_t segment, uint64_t version) const;

  // Payload that answers a pull of segments [first, first + count) of one run, at `version`, which
  // all of them have or had. `newest`: none of them has a later one. (With one copy: the current
  // weights, whatever their versions.) `runs`: for kRuns, the checked list of the pull. None: the
  // version is no longer kept (the format of the pulls has the two newest versions; other formats,
  // if pulls are encoded, only the newest).
  //   kNone, kBf16, kInt8   in place if that is the format of the pulls; with pulls of changes
  //                         computed from the shadow, kNone in place
  //   kRuns                 FP32 values, the same as in a whole pull
  //   kChanges              REQUIRES: ChangesBytes
  std::optional<Lease> Read(uint32_t first, uint32_t count, uint64_t version, bool newest,
                            Codec codec, std::span<const std::byte> runs);
  // Bytes of the changes from the previous version to `version` for segments [first, first + count)
  // of one run. None: changes of a segment are missing, or are not smaller than all the weights.
  std::optional<uint64_t> ChangesBytes(uint32_t first, uint32_t count, uint64_t version) const;

 private:
  // Two buffers by version.
  struct Copies {
    std::shared_ptr<AlignedBuffer> at[2];  // shared with messages in flight
    uint64_t version[2] = {0, 0};

    const std::shared_ptr<AlignedBuffer>* Find(uint64_t v) const {
      return at[v % 2] != nullptr && version[v % 2] == v ? &at[v % 2] : nullptr;
    }
  };
  struct Run {
    uint64_t begin = 0;  // elements, within the block
    uint64_t end = 0;
    Copies weights;
    Copies encoded;  // encoded copies or shadows; none with FP32 pulls
    uint64_t encoded_bytes = 0;
    Copies changes;  // with pulls of changes: made the shadow of its version
    uint64_t changes_bytes = 0;
    AlignedBuffer m;
    AlignedBuffer v;
    uint64_t newest = 0;  // version of the newest segment
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
  // A segment's part of an encoded copy of its run.
  std::span<std::byte> EncodedPart(AlignedBuffer& of_run, uint32_t segment) const;
  // A segment's part of the changes of its run.
  std::span<std::byte> ChangesPart(AlignedBuffer& of_run, uint32_t segment) const;
  bool shadows() const { return options_.pull_codec == Codec::kChanges; }
  // Whether pulls get another format than the weights'.
  bool encodes() const { return options_.pull_codec != Codec::kNone; }
  // Allocates changes; those of the newest version are empty.
  void MakeChanges(Run& run, uint64_t newest) const;
  void Encode(const Update& update);
  // The run that begins with this segment and has this extent; null: none.
  Run* FindRun(uint32_t first_segment, const Run& extent);
  // Fills one run. `held`: the segments from owned_[first] on.
  bool RecoverRun(Run& run, size_t first, std::span<const HeldSegment> held);
  // Copies a segment into the run's buffers; `has_previous`: also its version before.
  void PutSegment(Run& run, uint32_t id, const HeldSegment& segment, bool has_previous);
  // The copy to write `version` to. The first segment of a run at that version reuses the buffer of
  // version - 2.
  AlignedBuffer& Writable(Copies& copies, uint64_t version, size_t size_bytes);
  // Like Writable, but reuses the buffer of version - 1 unless it is being read.
  AlignedBuffer& WritableInPlace(Copies& copies, uint64_t version, size_t size_bytes);
  // A copy of segments [first, first + count), encoded with `codec`.
  Lease ReadCopy(uint32_t first, uint32_t count, std::span<const float> floats, Codec codec);
  std::optional<Lease> ReadRuns(std::span<const float> floats, std::span<const std::byte> list);
  Lease ReadChanges(uint32_t first, uint32_t count, uint64_t version);
  // The weights as a pulling worker decodes them. Valid until the next call.
  std::span<const float> Decoded(uint32_t first, uint32_t count, uint64_t elements,
                                 std::span<const std::byte> encoded);

  const SegmentTable& table_;
  const Options options_;
  const Codec encoded_as_;  // format of encoded copies
  const std::vector<uint32_t> owned_;
  std::vector<Run> runs_;
  std::vector<uint32_t> run_of_segment_;  // by segment id; unspecified for others' segments
  std::vector<uint64_t> encoded_begin_;   // by segment id: bytes, within the run's encoded copy
  std::vector<uint64_t> changes_begin_;   // the same, for changes
  SendBuffers send_buffers_;
  std::vector<float> decoded_;
  ShadowMaker shadow_maker_;
};

}  // namespace tug

#endif  // TUG_SERVER_SEGMENTS_WEIGHTS_STORE_H_
