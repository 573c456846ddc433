// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_PUSH_TABLE_H_
#define TUG_EXCHANGE_PUSH_TABLE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "base/memory/send_buffers.h"
#include "blocks/partition_plan.h"
#include "blocks/requests.h"
#include "blocks/segment_versions.h"
#include "exchange/awaited.h"
#include "exchange/encode/push_encoder.h"
#include "exchange/push_payloads.h"
#include "exchange/uncommitted_pushes.h"
#include "scheduler/credit_queue.h"

namespace tug {

// Uncommitted pushes of an exchange: when they are sent, under which credit, and when they are
// resent. States of a partition:
//
//   queued -> (policy, credit) -> sent -> received (credit returns) -> committed, or dropped
//                 ^                  |
//                 |                  v
//               wanted  <-------  deferred (credit returns: the lane could not store it)
//
// Replies may be late, repeated, reordered or lost. A later one implies the earlier ones. A
// partition without a reply is resent after its `patience`, which then doubles, up to kMaxPatience
// times comm.resend_ms.
//
// If pushes are summed, partitions are announced to a lane that has deferred one: for
// kAnnouncedClocks clocks after the newest clock it deferred, a partition whose turn comes is sent
// as a header alone (server/pushes/push_admission.h), which takes no credit.
//
//   queued -> (policy, credit) -> announced -> wanted -> (policy, credit) -> sent -> ...
//
// The lane reserves memory for what it requests, so a gradient crosses the network once, except for
// what was in flight when the lane ran short: at most the credit, once in kAnnouncedClocks clocks.
// A deferred or announced partition that is not requested is announced again after its patience.
// (This is MPI's rendezvous protocol after its eager one.) If every push is an update, lanes defer
// pushes that are out of order, and a deferred one queues again instead.
//
// With comm.push_codec, a partition is encoded when it is first sent (push_payloads.h), while
// others are in flight. An open push is encoded completely before the next push of its block and
// virtual worker is added, so that residuals are in order. A partition takes the credit of its
// longest possible payload; with codec `auto`, of its actual payload once encoded.
//
// With frees_gradients, a partition's frames are freed once it is received, the gradient once all
// are. Instead of a resend, a received partition is queried by its header. A lane that does not
// know it replies kDropped, and the push is lost. (kDropped has no other meaning then: pushes are
// summed, and none is late.)
//
// The cost of a message does not depend on the number of open pushes and partitions. Allocates
// nothing once the tables have grown, except for ranges of a sparse push. Not thread-safe.
class PushTable {
 public:
  // `plan` may be pointed at another plan, which applies to pushes added afterwards. REQUIRES: all
  // references outlive the table.
  PushTable(const ExchangeOptions& options, const std::shared_ptr<const PartitionPlan>& plan,
            const ExchangeSinks& sinks, PushEncoder& encoder, SendBuffers& buffers,
            const SegmentVersions& versions, ExchangeCounters& counters);

  void Add(PushRequest request, absl::Time now);
  void SetCredit(uint64_t credit_bytes, absl::Time now);
  // Handles kReceived, kCommitted, kDropped, kDeferred, kPushWanted.
  void OnAnswer(const WireHeader& header, absl::Time now);
  void OnTick(absl::Time now);
  // Lanes have forgotten which replies they owe: resends or queries all that is not committed.
  void SendAllAgain(absl::Time now);
  // The plan's lanes have changed: partitions all uncommitted pushes by it and sends them whole. A
  // push of which a part has been freed is lost.
  void CutAllAgain(absl::Time now);

  // Ends pushes of all other virtual workers as dropped, and discards their residuals.
  void GiveUpAllBut(std::span<const uint32_t> virtual_workers, absl::Time now);

  // Encodes all pushes of a virtual worker now, whenever they are sent.
  void EncodeAllOf(uint32_t virtual_worker);

  // Number of uncommitted pushes.
  size_t open() const { return pushes_.open(); }
  // Bytes that hold credit; bytes that wait for it.
  uint64_t outstanding_bytes() const { return queue_.outstanding_bytes(); }
  uint64_t waiting_bytes() const { return queue_.waiting_bytes(); }
  // See UncommittedPushes::AwaitedOf.
  Awaited AwaitedOf(uint32_t block) const { return pushes_.AwaitedOf(block); }

 private:
  using State = PartitionPush::State;
  static constexpr uint64_t kAnnouncedClocks = 16;
  static constexpr int kMaxPatience = 16;  // times comm.resend_ms

  // Partitions a push by the plan and queues it. `version_of`: PartitionPush.version of a
  // Partition.
  template <typename VersionOf>
  void Cut(uint32_t place, const VersionOf& version_of);
  void SendQueued(absl::Time now);
  void Send(OpenPush& push, uint32_t partition, absl::Time now);
  void SendHeader(MessageKind kind, OpenPush& push, uint32_t partition, absl::Time now);
  WireHeader PushHeader(MessageKind kind, const OpenPush& push, uint32_t partition) const;
  void StartWaiting(PartitionPush& part, absl::Time now);
  // Queues the partition again. REQUIRES: it holds no credit.
  void QueueAgain(PartitionPush& part);
  // Repeats what the lane has not answered: the payload if the lane may lack it, else the header.
  void Repeat(OpenPush& push, uint32_t partition, absl::Time now);
  void SendAgain(OpenPush& push, uint32_t partition, absl::Time now);
  // Whether the partition's lane has recently deferred a push: announce it when its turn comes.
  bool IsShort(const OpenPush& push, uint32_t partition) const;
  void OnDeferred(const OpenPush& push, uint32_t partition);
  void Announce(OpenPush& push, uint32_t partition, absl::Time now);
  // Applies a reply; false if it has no news.
  bool Advance(OpenPush& push, uint32_t partition, MessageKind answer, absl::Time now);
  void ReportReceived(OpenPush& push);
  void Finish(uint32_t place);

  const ExchangeOptions& options_;
  const std::shared_ptr<const PartitionPlan>& plan_;
  const ExchangeSinks& sinks_;
  PushEncoder& encoder_;
  const SegmentVersions& versions_;
  ExchangeCounters& counters_;
  const absl::Duration resend_after_;
  CreditQueue queue_;  // item: index of the push << 32 | partition
  UncommittedPushes pushes_;
  PushPayloads payloads_;
  absl::flat_hash_map<uint32_t, uint64_t> short_until_;  // by lane: earlier clocks are announced
  absl::Time next_due_ = absl::InfiniteFuture();         // no resend is due before
};

}  // namespace tug

#endif  // TUG_EXCHANGE_PUSH_TABLE_H_
