// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_PUSHES_PUSH_ADMISSION_H_
#define TUG_SERVER_PUSHES_PUSH_ADMISSION_H_

// Decides which pushes a lane stores, so that its memory is bounded for any number of workers and
// any order of arrival; and when it requests the pushes it did not store.
//
// Memory of sums: one waiting node per segment, 4 bytes per parameter, is always available. Every
// further node in the lane's own memory is "parked", and all parked nodes of a lane share
// `parking_bytes`. A node that waits in its sender's memory costs nothing.
//
//   1. A push is stored if its nodes, once merged with waiting siblings, do not raise the parked
//      bytes, or keep them within the limit.
//   2. Or if it is exempt: among the segments at the lane's lowest open clock, take the first
//      incomplete one in the order of a backward pass (the last block first); the push with its
//      first missing virtual worker is exempt. Prefixes of the tree need one node per level, so
//      exempt pushes hold at most log2(S) + 1 nodes of a partition beyond the limit. If an update
//      may omit k pushes (`spare`), one of the first k + 1 missing ones must arrive: all of them
//      are exempt, and hold at most k + 1 times as many.
//   3. Any other push is deferred: not stored, but remembered, and answered kDeferred. It is
//      requested (kPushWanted) once 1. or 2. holds: a sibling waits, room has become free, or the
//      exempt segment has changed. Once; again on a tick until it arrives. The node that it needs,
//      if any, is reserved until then: other pushes count one more in its segments.
//   4. A push announced by its header, without payload, counts as deferred: it is requested as soon
//      as 1. or 2. holds, possibly at once. Its place is reserved, so its payload crosses the
//      network once.
//
// Why no job stalls. Take the lowest clock c at which any lane has an open segment. All segments of
// all lanes have version c, so every worker can compute its gradients of clock c, and credit blocks
// none of them: every push gets an answer that returns it. Take a lane with a segment that is
// incomplete at c. Its exempt push is one of those, so it arrives, or has arrived and been
// deferred, and is then requested until it arrives. It is stored however full the parking is. So
// the first missing virtual worker of the exempt segment rises until that segment is complete; then
// the next one is exempt. In the end all segments of clock c are complete on all lanes, which is
// all that closing waits for. The argument does not depend on the parked nodes: all of them may
// lack their siblings.
//
// A job does not stall either if workers have memory for a few gradients only, and wait until their
// oldest push is received before they compute further (worker/gradients/gradient_pool.h). This is
// why 2. orders segments. A worker that waits runs one virtual worker, so it pushes the last block
// first and block 0 last. Take the last block of which any lane has a segment that is incomplete at
// c. All blocks after it are complete everywhere, so their pushes have been received, and no worker
// waits for these; so every worker comes to push this block. On a lane that misses some of it, the
// exempt segment is one of its segments: the argument above applies to this block alone, which is
// completed, and then to the one below. A worker of several virtual workers pushes block 0 of one
// before the last block of the next, so it does not wait for deferred pushes; nor does a worker
// that was told to take over from a lost one, or that others wait for at a gate
// (worker/core/lane_room.h).
//
// While workers use the same partitions (blocks/partitioner.h), the segments of a partition have
// the same tree state. In the steps in which a schedule changes they do not (comm.scheduler AUTO).
// The argument above still holds: it takes one segment after the other, and once all segments
// before the exempt one are complete, every push that it misses begins with it. Only the bound of
// 2. is weaker then: an exempt push contains segments that other workers will still push in
// smaller partitions, so up to one node per worker may wait, log2(S) + 1 times, instead of one.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "blocks/segment_table.h"
#include "server/pushes/open_pushes.h"
#include "server/segments/segment_state.h"

namespace tug {

// Not thread-safe: owned by one lane.
class PushAdmission {
 public:
  struct Options {
    uint64_t parking_bytes = 0;
    uint64_t start_clock = 0;
    size_t max_deferred = 0;  // limit; senders resend pushes beyond it
    uint32_t spare = 0;       // pushes that an update may omit
    // Whether to request deferred pushes that are no longer needed, too, once: their senders wait
    // for an answer if a closed clock does not mean that the push was committed.
    bool ask_for_closed = false;
    absl::Duration repeat_after;  // until a kPushWanted is repeated
  };
  // REQUIRES: `table` and `states` outlive it.
  PushAdmission(Options options, const SegmentTable& table, const SegmentStates& states,
                std::span<const uint32_t> owned);

  // Segments have these versions now. Call before the first push.
  void StartAt(uint64_t clock) { exempt_clock_ = clock; }

  // Whether to store the push. `own`: it lies, or will be decoded, in the lane's own memory.
  bool Admits(const PushKey& key, bool own);
  // Remembers a push to request later. REQUIRES: not admitted.
  void Defer(const PushKey& key, bool own);
  // Remembers an announced push. If it can be requested now, appends it to `wanted` and returns
  // true.
  bool Announce(const PushKey& key, absl::Time now, std::vector<PushKey>& wanted);
  // The push is about to be stored, or is no longer needed.
  void Forget(const PushKey& key);
  // The segment's tree or version has changed.
  void Changed(uint32_t segment);
  // Drops all deferred pushes; their senders resend them.
  void ForgetAll();
  // Replaces Options::spare.
  void SetSpare(uint32_t spare) { spare_ = spare; }

  // Appends the pushes to request now. Call after every change.
  void TakeWanted(absl::Time now, std::vector<PushKey>& wanted);
  // Checks all deferred pushes, and repeats requests that are `repeat_after` old.
  void OnTick(absl::Time now, std::vector<PushKey>& wanted);

  uint64_t parked_bytes() const { return parked_bytes_; }
  size_t deferred() const { return deferred_count_; }

 private:
  struct Deferred {
    PushKey key;
    bool own = false;
    absl::Time asked_at = absl::InfiniteFuture();  // infinite: not requested
    bool promised = false;                         // a node is reserved in each of its segments

    bool asked() const { return asked_at != absl::InfiniteFuture(); }
  };
  struct Need {
    bool missing = false;      // an open segment lacks the push
    bool node = false;         // storing and merging it adds a node
    int64_t parked_bytes = 0;  // by which storing it raises the parked bytes
  };
  // Nodes of a segment in the lane's own memory: existing, and reserved for requested pushes.
  struct Nodes {
    uint32_t own = 0;
    uint32_t promised = 0;
  };

  Need NeedOf(const PushKey& key, bool own) const;
  bool Fits(const Need& need) const;
  std::optional<uint32_t> ExemptSegment();
  bool IsExempt(const PushKey& key);
  uint64_t ParkedIn(uint32_t segment, uint32_t own_nodes) const;
  void SetNodes(uint32_t segment, Nodes nodes);
  void Promise(Deferred& deferred, bool promised);
  // Requests the pushes that begin with `segment` and fit now. False: some did not fit.
  bool AskFrom(uint32_t segment, absl::Time now, std::vector<PushKey>& wanted);
  void Drop(std::vector<Deferred>& list, size_t index);

  const Options options_;
  const SegmentTable& table_;
  const SegmentStates& states_;
  const std::vector<uint32_t> owned_;  // in backward-pass order
  std::vector<Nodes> nodes_;           // by segment
  uint64_t parked_bytes_ = 0;
  uint64_t reserved_bytes_ = 0;                  // parked, including all promised nodes
  std::vector<std::vector<Deferred>> deferred_;  // by first segment
  size_t deferred_count_ = 0;
  size_t asked_count_ = 0;
  std::vector<uint32_t> changed_;  // since the last TakeWanted, if anything is deferred
  uint32_t spare_;
  uint64_t exempt_clock_;
  size_t exempt_index_ = 0;  // in owned_: segments before it are complete at exempt_clock_
  size_t sweep_index_ = 0;   // in owned_: where to continue when there is room
};

}  // namespace tug

#endif  // TUG_SERVER_PUSHES_PUSH_ADMISSION_H_
