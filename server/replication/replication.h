// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_REPLICATION_REPLICATION_H_
#define TUG_SERVER_REPLICATION_REPLICATION_H_

// The owner's side of replicas: tracks what each replica has, what to send, and when an update may
// be applied. The shard provides payloads, weights and clocks; the replica's side is copy_store.h.
//
// Rule: the owner applies an update only when every replica that follows has it. So a replica has
// everything that a worker was served or told, and may replace the owner at any moment. (Chain of
// two; compare van Renesse and Schneider 2004, "Chain replication".)
//
// States of a replica, as its owner sees it:
//   unknown    the owner asks (kCopyWanted) for its version
//   lagging    it has another version than the owner, or none; it waits to be filled
//   filling    the whole segment is in flight (kCopy); at most `copy_bytes` over all segments
//   following  it has the owner's version, and gets each update (kUpdate); at most `update_bytes`
//              over all segments are in flight, one update per segment
//
// The next update of a segment waits while a replica of it is unknown or filling. It does not wait
// for a lagging replica, which is filled between two updates, unless that one is ahead of the
// owner: such a replica followed under an earlier placement, and must keep all that is committed.
// (It applied an update that the owner could not apply before the placement changed.)
//
// Messages may be lost, repeated and reordered. A request has a number, which its answer repeats:
// only the answer to the kCopy or kUpdate itself counts, since the replica may have had that
// version before. Answers of other views never arrive here (shard.h). A request without answer is
// resent when nothing has arrived from the replica's lane for `resend_first`, doubling up to
// `resend_most`, and after `resend_most` in any case.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "blocks/segment_table.h"
#include "proto/wire.h"

namespace tug {

// Not thread-safe: owned by one lane.
class Replication {
 public:
  struct Options {
    absl::Duration resend_first = absl::Milliseconds(200);
    absl::Duration resend_most = absl::Seconds(10);
    uint64_t update_bytes = 0;
    uint64_t copy_bytes = 0;
    uint64_t bytes_per_element = 16;  // size of a kCopy
  };
  // By segment id: lanes with a replica. Only entries of owned segments are read.
  using CopyLanes = std::vector<std::vector<uint32_t>>;

  // A message to send, with the segment's current state.
  struct Request {
    MessageKind kind = MessageKind::kCopyWanted;
    uint32_t lane = 0;
    uint32_t segment = 0;
    uint64_t number = 0;
  };

  // All replicas start as following: at the start of a timeline they are filled like their owner.
  // REQUIRES: `table` outlives it.
  Replication(Options options, const SegmentTable& table, std::span<const uint32_t> owned,
              const CopyLanes& copies);

  // Asks all replicas for their versions, of which nothing is known.
  void AskAll(absl::Time now);
  // In a new view of the same placement: resends all open requests, since answers in the old view
  // do not count.
  void AskAgain(absl::Time now);
  void OnTick(absl::Time now);

  // The segment's next update can be made. requests() gets it once it may be sent, acknowledged()
  // once it may be applied. REQUIRES: no update of the segment is offered or in flight.
  void Offer(uint32_t segment, absl::Time now);
  // The update has been applied.
  void Applied(uint32_t segment, absl::Time now);
  // Handles a kCopied with `number`. `version`: the replica's; `own`: the owner's. False: that lane
  // has no replica of the segment.
  bool OnCopied(uint32_t lane, uint32_t segment, uint64_t version, uint64_t own, uint64_t number,
                absl::Time now);

  // Pending work; the caller moves it out.
  std::vector<Request>& requests() { return requests_; }
  std::vector<uint32_t>& acknowledged() { return acknowledged_; }

  // Whether an update of the segment is offered, in flight or acknowledged, but not applied.
  bool under_way(uint32_t segment) const { return segments_[segment].update != Update::kNone; }
  // Whether all replicas follow.
  bool all_in_sync() const { return following_ == copies_; }

 private:
  enum class State : uint8_t { kUnknown, kLagging, kFilling, kFollowing };
  enum class Update : uint8_t { kNone, kOffered, kSent, kAcknowledged };
  struct Copy {
    uint32_t lane = 0;
    State state = State::kFollowing;
    bool ahead = false;         // lagging only: updates wait for it
    bool acknowledged = false;  // following only: has the update in flight
    uint64_t number = 0;        // of the open request
    absl::Time sent_at = absl::InfinitePast();
    absl::Duration resend_after;
  };
  struct Owned {
    Update update = Update::kNone;
    std::vector<Copy> copies;
  };
  struct LaneHeard {
    uint32_t lane = 0;
    absl::Time at = absl::InfinitePast();
  };

  bool Open(const Owned& owned, const Copy& copy) const;
  void Send(uint32_t segment, Copy& copy, absl::Time now);
  void Send(uint32_t segment, Copy& copy, MessageKind kind, absl::Time now);
  bool MaySend(const Owned& owned, uint32_t segment) const;
  bool MayFill(const Owned& owned, uint32_t segment) const;
  void SendUpdate(uint32_t segment, absl::Time now);
  void CheckAcknowledged(uint32_t segment);
  // Starts what is allowed: fills lagging replicas, then sends offered updates.
  void BeginWaiting(absl::Time now);
  void Follow(uint32_t segment, Copy& copy);
  absl::Time& HeardFrom(uint32_t lane);
  uint64_t CopyBytes(uint32_t segment) const;

  const Options options_;
  const SegmentTable& table_;
  std::vector<Owned> segments_;        // by id
  std::vector<uint32_t> with_copies_;  // ids
  std::vector<uint32_t> offered_;      // not sent yet, in order
  std::vector<LaneHeard> heard_;       // by lane; few
  uint64_t copies_ = 0;
  uint64_t following_ = 0;
  uint64_t lagging_ = 0;
  uint64_t updates_under_way_bytes_ = 0;
  uint64_t copies_under_way_bytes_ = 0;
  uint64_t number_ = 0;
  std::vector<Request> requests_;
  std::vector<uint32_t> acknowledged_;
};

}  // namespace tug

#endif  // TUG_SERVER_REPLICATION_REPLICATION_H_
