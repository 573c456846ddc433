#ifndef TUG_EXCHANGE_PUSH_TABLE_H_
#define TUG_EXCHANGE_PUSH_TABLE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "exchange/awaited.h"
#include "exchange/partition_plan.h"
#include "exchange/push_encoder.h"
#include "exchange/push_payloads.h"
#include "exchange/requests.h"
#include "exchange/segment_versions.h"
#include "exchange/send_buffers.h"
#include "exchange/uncommitted_pushes.h"
#include "scheduler/credit_queue.h"

namespace tug {

// The pushes of an exchange that are not committed: when they leave, under which credit, and when
// they leave again. Life of a partition of one:
//
//   queued -> (policy, credit) -> sent -> received (credit returns) -> committed, or dropped
//                 ^                  |
//                 |                  v
//               wanted  <-------  deferred (credit returns: the lane could not store it)
//
// Answers come late, twice, out of order or not at all: a later one stands for those before it, and
// what is not answered for its `patience` is sent again, then after twice as long, up to
// kMostPatience times comm.resend_ms.
//
// Where pushes are summed, a lane that has deferred one is announced to: from then on, for
// kAnnouncedClocks clocks after that of the latest one that it deferred, a partition does not go to
// it when its turn comes, but its header alone (server/push_admission.h), which takes no credit.
//
//   queued -> (policy, credit) -> announced -> wanted -> (policy, credit) -> sent -> ...
//
// The lane keeps a place for what it asks for, so a gradient crosses the network once, but for what
// was under way when the lane ran short: at most the credit, once in so many clocks. A deferred or
// announced one that nobody asks for is announced again after its patience. (MPI's rendezvous
// protocol, which it has for what may find no memory, after its eager one.) Where every push is an
// update, lanes defer for another reason, and what is deferred queues again instead.
//
// With comm.push_codec a partition is encoded when it is sent first (push_payloads.h), so that
// others are on their way meanwhile; but what an open push has not sent is encoded before another
// one of the block and virtual worker comes, as residuals want it. It takes the credit of the
// longest payload that it can have; with its codec `auto`, once it is encoded, of that which it
// has.
//
// With frees_gradients a partition's frames are let go of when it is received, the gradient when
// all are. A received one is asked for by its header alone, where others are sent again; a lane
// that does not know it says kDropped, which it says of nothing else then (pushes are summed, and
// none is late), and the push is lost.
//
// A message costs the same however many pushes and partitions are open, and allocates nothing once
// the tables have grown (but the runs of a sparse one). Not thread-safe.
class PushTable {
 public:
  // `plan` may be made to point at another one: pushes that are added then are cut by that.
  // REQUIRES: all references outlive the table.
  PushTable(const ExchangeOptions& options, const std::shared_ptr<const PartitionPlan>& plan,
            const ExchangeSinks& sinks, PushEncoder& encoder, SendBuffers& buffers,
            const SegmentVersions& versions, ExchangeCounters& counters);

  void Add(PushRequest request, absl::Time now);
  void SetCredit(uint64_t credit_bytes, absl::Time now);
  // kReceived, kCommitted, kDropped, kDeferred, kPushWanted.
  void OnAnswer(const WireHeader& header, absl::Time now);
  void OnTick(absl::Time now);
  // Lanes do not know any more who is to be told of what: all that is not committed leaves again,
  // or is asked for.
  void SendAllAgain(absl::Time now);
  // The plan's lanes are others: all that is not committed is cut by it, whole pushes, and leaves.
  // A push of which something has been let go of is lost.
  void CutAllAgain(absl::Time now);

  // Ends the pushes of virtual workers that are not among these, as dropped ones, and gives up
  // their residuals.
  void GiveUpAllBut(std::span<const uint32_t> virtual_workers, absl::Time now);

  // All that has been pushed of a virtual worker is encoded now, whenever it is sent.
  void EncodeAllOf(uint32_t virtual_worker);

  // Not committed.
  size_t open() const { return pushes_.open(); }
  // Bytes that hold credit, and those that wait for it.
  uint64_t outstanding_bytes() const { return queue_.outstanding_bytes(); }
  uint64_t waiting_bytes() const { return queue_.waiting_bytes(); }
  // As UncommittedPushes::AwaitedOf.
  Awaited AwaitedOf(uint32_t block) const { return pushes_.AwaitedOf(block); }

 private:
  using State = PartitionPush::State;
  static constexpr uint64_t kAnnouncedClocks = 16;
  static constexpr int kMostPatience = 16;  // times comm.resend_ms

  // Cuts it by the plan, and puts it into the queue. `version_of`: PartitionPush.version of a
  // Partition.
  template <typename VersionOf>
  void Cut(uint32_t place, const VersionOf& version_of);
  void SendQueued(absl::Time now);
  void Send(OpenPush& push, uint32_t partition, absl::Time now);
  void SendHeader(MessageKind kind, OpenPush& push, uint32_t partition, absl::Time now);
  WireHeader PushHeader(MessageKind kind, const OpenPush& push, uint32_t partition) const;
  void StartWaiting(PartitionPush& part, absl::Time now);
  // It leaves when its turn comes. REQUIRES: it holds no credit.
  void QueueAgain(PartitionPush& part);
  // What the lane has not answered is said again: the payload where it may lack it, else the
  // header.
  void Repeat(OpenPush& push, uint32_t partition, absl::Time now);
  void SendAgain(OpenPush& push, uint32_t partition, absl::Time now);
  // Whether the push's lane has lately deferred one: it is announced there when its turn comes.
  bool IsShort(const OpenPush& push, uint32_t partition) const;
  void OnDeferred(const OpenPush& push, uint32_t partition);
  void Announce(OpenPush& push, uint32_t partition, absl::Time now);
  // Takes an answer; false if it says nothing new.
  bool Advance(OpenPush& push, uint32_t partition, MessageKind answer, absl::Time now);
  void SayReceived(OpenPush& push);
  void Finish(uint32_t place);

  const ExchangeOptions& options_;
  const std::shared_ptr<const PartitionPlan>& plan_;
  const ExchangeSinks& sinks_;
  PushEncoder& encoder_;
  const SegmentVersions& versions_;
  ExchangeCounters& counters_;
  const absl::Duration resend_after_;
  CreditQueue queue_;  // item: place << 32 | partition
  UncommittedPushes pushes_;
  PushPayloads payloads_;
  absl::flat_hash_map<uint32_t, uint64_t> short_until_;  // by lane: clocks before are announced
  absl::Time next_due_ = absl::InfiniteFuture();         // nothing is due before
};

}  // namespace tug

#endif  // TUG_EXCHANGE_PUSH_TABLE_H_
