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
#include "exchange/requests.h"
#include "exchange/segment_versions.h"
#include "exchange/send_buffers.h"
#include "scheduler/credit_queue.h"

namespace tug {

// The pushes of an exchange that are not committed. Life of a partition of one:
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
// With comm.push_codec a partition is encoded when it is sent first (push_encoder.h), so that
// others are on their way meanwhile; but what an open push has not sent is encoded before another
// one of the block and virtual worker comes, as residuals want it. It takes the credit of the
// longest payload that it can have; with its codec `auto`, once it is encoded, of that which it
// has. With `auto` it is seen then whether there is anything to encode; and the answers to what is
// sent tell how fast the links are. One that is sent to tell it is answered, or sent again, before
// anything else is encoded, which would keep the answer from being seen.
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
  size_t open() const { return open_; }
  // Bytes that hold credit, and those that wait for it.
  uint64_t outstanding_bytes() const { return queue_.outstanding_bytes(); }
  uint64_t waiting_bytes() const { return queue_.waiting_bytes(); }
  // Of the block's pushes; kNothing: all are committed. Looks at each of their partitions.
  Awaited AwaitedOf(uint32_t block) const;

 private:
  enum class State : uint8_t {
    kQueued,
    kAnnounced,
    kSent,
    kReceived,
    kDeferred,
    kWanted,
    kCommitted
  };
  struct PartitionPush {
    State state = State::kQueued;
    Codec codec = Codec::kNone;
    CreditQueue::Ticket ticket = 0;  // until it is committed
    uint64_t bytes = 0;              // of the payload at most: what it takes of the credit
    Lease frames;                    // kFrames: the payload, once it is encoded
    LinkRate::Sent sent = {};        // with comm.push_codec.auto
    bool probes = false;             // not answered: it is sent to tell the rate of its link
    uint64_t version = 0;            // of the weights that it is a gradient of
    absl::Time due;                  // when it is sent again
    absl::Duration patience;         // from the last sending to `due`
    // Where the job is traced: when it came into the queue, and left it.
    int64_t queued_ns = 0;
    int64_t sent_ns = 0;
  };
  // A place in the table, used again by later pushes.
  struct OpenPush {
    PushRequest request;
    std::shared_ptr<const PartitionPlan> plan;  // that it was cut by
    std::vector<PartitionPush> partitions;      // as the plan's
    EncodedPush encoded;
    uint32_t uncommitted = 0;  // partitions; 0: the place is free
    uint32_t unreceived = 0;   // partitions that are neither received nor committed
    bool dropped = false;      // a partition at least
    bool lost = false;         // the same, with frees_gradients
    uint32_t next = kNone;     // another open push of the same block and virtual worker
  };
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint64_t kAnnouncedClocks = 16;
  static constexpr int kMostPatience = 16;  // times comm.resend_ms

  uint32_t TakePlace();
  // Cuts it by the plan, and puts it into the queue. `version_of`: PartitionPush.version of a
  // Partition.
  template <typename VersionOf>
  void Cut(uint32_t place, const VersionOf& version_of);
  static const Partition& PartOf(const OpenPush& push, uint32_t partition) {
    return push.plan->of_block(push.request.block)[partition];
  }
  // Of the weights that a part of a push is a gradient of, from those of the parts that the push
  // was cut into before.
  static uint64_t LowestVersion(std::span<const Partition> plan,
                                std::span<const PartitionPush> pushes, const Partition& part);
  // Head of the list of open pushes of a block and virtual worker.
  uint32_t& HeadOf(uint32_t block, uint32_t virtual_worker);
  uint32_t Find(const WireHeader& header) const;
  void ChooseCodec(const PushRequest& request, const Partition& part, PartitionPush& push) const;
  // Of all partitions that have not been sent.
  void EncodeAll(OpenPush& push);
  void Encode(OpenPush& push, uint32_t partition);
  TraceEvent EventOf(TraceKind kind, const OpenPush& push, uint32_t partition) const;
  void SendAgain(OpenPush& push, uint32_t partition, absl::Time now);
  // It leaves when its turn comes. REQUIRES: it holds no credit.
  void QueueAgain(PartitionPush& part);
  // Whether a partition whose turn has come is announced.
  bool IsShort(const OpenPush& push, uint32_t partition) const;
  void NoteDeferred(const OpenPush& push, uint32_t partition);
  void Announce(OpenPush& push, uint32_t partition, absl::Time now);
  // Of what was deferred or announced, and is not asked for.
  void OfferAgain(OpenPush& push, uint32_t partition, absl::Time now);
  // Whether the lane has it. REQUIRES: it was received.
  void AskFor(OpenPush& push, uint32_t partition, absl::Time now);
  void SendHeader(MessageKind kind, OpenPush& push, uint32_t partition, absl::Time now);
  WireHeader PushHeader(MessageKind kind, const OpenPush& push, uint32_t partition) const;
  // With comm.push_codec.auto: it is about to leave; it has arrived.
  void MeasureSending(OpenPush& push, uint32_t partition, absl::Time now);
  void MeasureAnswer(OpenPush& push, uint32_t partition, absl::Time now);
  // Nothing is learned of its next answer.
  void ForgetSending(PartitionPush& part);
  LinkRate::Moment MomentOf(absl::Time now) const;
  void TraceQueued(PartitionPush& part) const;
  void TraceSending(OpenPush& push, uint32_t partition);
  void TraceAnswer(const OpenPush& push, uint32_t partition);
  void SendQueued(absl::Time now);
  // With comm.push_codec.auto: what is about to leave holds no more credit than it has bytes.
  void HoldBytesOf(const PartitionPush& part);
  // Of the payload. REQUIRES: it has been sent, or is about to be.
  static uint64_t BytesOf(const PartitionPush& part) {
    return part.codec == Codec::kFrames ? part.frames.size_bytes() : part.bytes;
  }
  void Send(OpenPush& push, uint32_t partition, absl::Time now);
  Lease Payload(OpenPush& push, uint32_t partition);
  bool Advance(uint32_t place, uint32_t partition, MessageKind answer, absl::Time now);
  // With frees_gradients: it has been received. REQUIRES: not before, since it was cut.
  void LetGo(OpenPush& push, uint32_t partition);
  void SayReceived(OpenPush& push);
  void Finish(uint32_t place);
  void Repeat(uint32_t place, uint32_t partition, absl::Time now);

  const ExchangeOptions& options_;
  const std::shared_ptr<const PartitionPlan>& plan_;
  const ExchangeSinks& sinks_;
  PushEncoder& encoder_;
  SendBuffers& buffers_;
  const SegmentVersions& versions_;
  ExchangeCounters& counters_;
  const absl::Duration resend_after_;
  CreditQueue queue_;  // item: place << 32 | partition
  std::vector<std::unique_ptr<OpenPush>> places_;
  std::vector<uint32_t> free_places_;
  std::vector<std::vector<uint32_t>> heads_;             // by block and virtual worker: place
  absl::flat_hash_map<uint32_t, uint64_t> short_until_;  // by lane: clocks before are announced
  size_t open_ = 0;
  bool probes_ = false;  // nothing leaves until a partition's `probes` is answered
  absl::Time next_due_ = absl::InfiniteFuture();  // nothing is due before
};

}  // namespace tug

#endif  // TUG_EXCHANGE_PUSH_TABLE_H_
