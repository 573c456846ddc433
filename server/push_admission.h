#ifndef TUG_SERVER_PUSH_ADMISSION_H_
#define TUG_SERVER_PUSH_ADMISSION_H_

// Which pushes a lane stores, so that its memory is bounded for any number of workers and any order
// of arrival; and which of those it did not store it asks for, when.
//
// Memory of sums: one waiting node per segment, 4 bytes a parameter, is always there. Every further
// node in our own memory is "parked", and all parked nodes of a lane share `parking_bytes`. A node
// that waits in its sender's memory costs nothing.
//
//   1. A push is stored if its nodes, once merged with siblings that wait, leave the parked bytes
//      no higher than before, or within the parking.
//   2. Or if it is exempt: among the segments at the lane's lowest open clock, take the first, in
//      the order of a backward pass (the last block's before those of the block below), that is not
//      complete; the push that brings its first missing virtual worker is exempt. Prefixes of the
//      tree need a node per level, so exempt pushes can hold at most log2(S) + 1 nodes of a
//      partition beyond the parking. Where an update does without k of them (`spare`), one of the
//      first k + 1 that are missing must come: they are all exempt, and hold at most k + 1 times as
//      many.
//   3. Any other is deferred: not stored, remembered, its sender told (kDeferred). It is asked for
//      (kPushWanted) when 1. or 2. has come to hold: a sibling has come to wait, room has come free
//      or the exempt segment has moved on. Once; again on a tick if it does not come. The node that
//      it needs, if it does, is its own until it comes: others find one more in its segments.
//   4. A push that is announced by its header, without its payload, is treated as if it had been
//      deferred: it is asked for as soon as 1. or 2. holds, which may be at once. It comes to a
//      place that is kept for it, so its payload crosses the network once.
//
// Why no job stands still. Take the lowest clock c at which any lane has an open segment. All
// segments of all lanes have version c, so every worker can compute its gradients of clock c, and
// credit holds none back: every push is answered by something that returns it. Take a lane with a
// segment that is not complete at c. Its exempt push is one of those, so it comes, or has come and
// been deferred, and is then asked for until it comes. It is stored however full the parking is.
// So the first missing virtual worker of the exempt segment rises until that segment is complete,
// then the next one is exempt; at last all segments of clock c are complete on all lanes, which is
// all that closing waits for. Nothing in this depends on what the parking holds: it may be full of
// nodes whose siblings are nowhere yet.
//
// Nor does one where workers have memory for a few gradients only, and wait for their oldest push
// to be received before they compute further (worker/gradient_pool.h). This is what the order of 2.
// is for. A worker that waits carries one virtual worker, so it pushes the last block first and
// block 0 last. Take the last block of which any lane has a segment that is not complete at c. All
// blocks after it are complete everywhere, so their pushes have been received, and nobody waits for
// these; so everybody comes to push this block. On a lane that misses some of it, the exempt
// segment is one of its segments: the argument above is of this block alone, which is completed,
// and then of the one below. A worker of several virtual workers pushes block 0 of one before the
// last block of the next, so it does not wait for what is deferred, nor does one that has been told
// to take over from a lost one, nor one that others wait for at a gate (worker/lane_room.h).
//
// Where workers cut blocks into the same partitions (scheduler/partitioner.h), the segments of a
// partition have the same tree state. In the steps in which a schedule changes they do not
// (comm.scheduler AUTO). The argument above stands: it is about one segment after the other, and
// once all segments before the exempt one are complete, every push that it misses begins with it.
// Only the bound of 2. is weaker then: an exempt push brings segments of which those of other
// workers are still to come in smaller pushes, so up to a node a worker may wait, log2(S) + 1
// times, in place of one.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "exchange/segment_table.h"
#include "server/open_pushes.h"
#include "server/segment_state.h"

namespace tug {

// Not thread-safe: owned by one lane.
class PushAdmission {
 public:
  struct Options {
    uint64_t parking_bytes = 0;
    uint64_t start_clock = 0;
    size_t most_deferred = 0;  // remembered; a sender repeats what is forgotten
    uint32_t spare = 0;        // pushes that an update may do without
    // Whether what was deferred and is not needed any more is asked for too, once: where that does
    // not mean that it was committed, its sender waits for word.
    bool ask_for_closed = false;
    absl::Duration repeat_after;  // of a kPushWanted
  };
  // REQUIRES: `table` and `states` outlive it.
  PushAdmission(Options options, const SegmentTable& table, const SegmentStates& states,
                std::span<const uint32_t> owned);

  // Segments have these versions by now. Before the first push.
  void StartAt(uint64_t clock) { exempt_clock_ = clock; }

  // Whether the push is to be stored. `own`: it lies, or will be decoded, in our own memory.
  bool Admits(const PushKey& key, bool own);
  // Remembers it. REQUIRES: not admitted.
  void Defer(const PushKey& key, bool own);
  // Remembers one whose payload is not here, and appends it if it is to be asked for now. Returns
  // whether it is.
  bool Announce(const PushKey& key, absl::Time now, std::vector<PushKey>& wanted);
  // It is about to be stored, or need not be any more.
  void Forget(const PushKey& key);
  // The segment's tree or version has changed.
  void Changed(uint32_t segment);
  // Senders will send again all that was deferred.
  void ForgetAll();
  // In place of Options::spare.
  void SetSpare(uint32_t spare) { spare_ = spare; }

  // Appends the pushes to ask for now. After every change.
  void TakeWanted(absl::Time now, std::vector<PushKey>& wanted);
  // Looks at all that is deferred, repeats what was asked for `repeat_after` ago.
  void OnTick(absl::Time now, std::vector<PushKey>& wanted);

  uint64_t parked_bytes() const { return parked_bytes_; }
  size_t deferred() const { return deferred_count_; }

 private:
  struct Deferred {
    PushKey key;
    bool own = false;
    absl::Time asked_at = absl::InfiniteFuture();  // not asked for
    bool promised = false;                         // a node in each of its segments

    bool asked() const { return asked_at != absl::InfiniteFuture(); }
  };
  struct Need {
    bool missing = false;      // some open segment lacks the push
    bool node = false;         // and has a node more once it is stored and merged
    int64_t parked_bytes = 0;  // more than before then
  };
  // Nodes of a segment in our own memory: there, and those that pushes asked for may bring.
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
  // Asks for what may come now among the pushes that begin with `segment`. False if one of them is
  // not asked for, since there is no room.
  bool AskFrom(uint32_t segment, absl::Time now, std::vector<PushKey>& wanted);
  void Drop(std::vector<Deferred>& list, size_t index);

  const Options options_;
  const SegmentTable& table_;
  const SegmentStates& states_;
  const std::vector<uint32_t> owned_;  // in the order of a backward pass
  std::vector<Nodes> nodes_;           // by segment
  uint64_t parked_bytes_ = 0;
  uint64_t reserved_bytes_ = 0;                  // parked, once what was promised is there too
  std::vector<std::vector<Deferred>> deferred_;  // by first segment
  size_t deferred_count_ = 0;
  size_t asked_count_ = 0;
  std::vector<uint32_t> changed_;  // since the last TakeWanted, if anything is deferred
  uint32_t spare_;
  uint64_t exempt_clock_;
  size_t exempt_index_ = 0;  // in owned_: those before it are complete at exempt_clock_
  size_t sweep_index_ = 0;   // in owned_: where to look next when there is room
};

}  // namespace tug

#endif  // TUG_SERVER_PUSH_ADMISSION_H_
