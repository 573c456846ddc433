#ifndef TUG_SERVER_REPLICATION_H_
#define TUG_SERVER_REPLICATION_H_

// The owner's side of the copies of its segments: who has what, what to send, when an update may be
// applied. Payloads, weights and clocks are the shard's; the copy's side is copy_store.h.
//
// Rule: an update is applied by the owner only when every copy that follows has it. So nothing that
// a worker is told, or served, is lacking in a copy, and a copy may take the owner's place at any
// moment. (Chain of two; compare van Renesse and Schneider 2004, "Chain replication".)
//
// A copy, as its owner sees it:
//   unknown    it is asked (kCopyWanted) what it has
//   lagging    it has something else than the owner, or nothing; it waits to be filled
//   filling    the whole segment is on its way (kCopy); at most `copy_bytes` of all segments
//   following  it has what the owner has, and gets each update (kUpdate); at most `update_bytes` of
//              all segments are under way, one of each
//
// The next update of a segment waits while a copy of it is unknown or filling. It does not wait for
// one that lags, which is to be filled between two updates; but for one that is ahead of the owner
// it does: that one followed a moment ago, under another placement, and goes on to have all that is
// committed. (It took an update that the owner could not apply before the placement changed.)
//
// Messages may be lost, repeated and overtaken. A request has a number, which its answer repeats:
// only the answer to a kCopy or kUpdate itself counts for it, since the copy may have had that
// version before. Answers of other views never come here (shard.h). What is not answered is sent
// again when the copy's lane has said nothing for `resend_first`, doubling up to `resend_most`, and
// after that time in any case.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "exchange/segment_table.h"
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
    uint64_t bytes_per_element = 16;  // of a kCopy
  };
  // By segment id, the lanes that copy it; of other lanes' segments it is not read.
  using CopyLanes = std::vector<std::vector<uint32_t>>;

  // A message to be sent: kCopyWanted, kUpdate or kCopy, of the segment as it is.
  struct Request {
    MessageKind kind = MessageKind::kCopyWanted;
    uint32_t lane = 0;
    uint32_t segment = 0;
    uint64_t number = 0;
  };

  // All copies follow: at the beginning of a timeline, where they are filled like their owner.
  // REQUIRES: `table` outlives it.
  Replication(Options options, const SegmentTable& table, std::span<const uint32_t> owned,
              const CopyLanes& copies);

  // Of what copies have, nothing is known: asks them all.
  void AskAll(absl::Time now);
  // In another view of the same placement: all that is open is asked for, or sent, again, since
  // answers under the old one do not count.
  void AskAgain(absl::Time now);
  void OnTick(absl::Time now);

  // The segment's next update can be made. Once it may be sent, there are requests for it; once it
  // may be applied, it is in acknowledged(). REQUIRES: none is offered or under way.
  void Offer(uint32_t segment, absl::Time now);
  // It is applied.
  void Applied(uint32_t segment, absl::Time now);
  // A kCopied with `number`. `version`: the copy's; `own`: the owner's. False if that lane keeps no
  // copy of the segment.
  bool OnCopied(uint32_t lane, uint32_t segment, uint64_t version, uint64_t own, uint64_t number,
                absl::Time now);

  // What to do now; the caller takes them out.
  std::vector<Request>& requests() { return requests_; }
  std::vector<uint32_t>& acknowledged() { return acknowledged_; }

  // An update of the segment is offered, under way or acknowledged, and not applied.
  bool under_way(uint32_t segment) const { return segments_[segment].update != Update::kNone; }
  // Whether all copies follow.
  bool all_in_sync() const { return following_ == copies_; }

 private:
  enum class State : uint8_t { kUnknown, kLagging, kFilling, kFollowing };
  enum class Update : uint8_t { kNone, kOffered, kSent, kAcknowledged };
  struct Copy {
    uint32_t lane = 0;
    State state = State::kFollowing;
    bool ahead = false;         // lagging only: updates wait for it
    bool acknowledged = false;  // following only: has the update under way
    uint64_t number = 0;        // of the request that is open
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
  // Begins what may begin: copies that lag, then updates that are offered.
  void BeginWaiting(absl::Time now);
  void Follow(uint32_t segment, Copy& copy);
  absl::Time& HeardFrom(uint32_t lane);
  uint64_t CopyBytes(uint32_t segment) const;

  const Options options_;
  const SegmentTable& table_;
  std::vector<Owned> segments_;        // by id
  std::vector<uint32_t> with_copies_;  // ids
  std::vector<uint32_t> offered_;      // and not sent, in their order
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

#endif  // TUG_SERVER_REPLICATION_H_
