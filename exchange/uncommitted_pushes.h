#ifndef TUG_EXCHANGE_UNCOMMITTED_PUSHES_H_
#define TUG_EXCHANGE_UNCOMMITTED_PUSHES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "exchange/awaited.h"
#include "exchange/link_rate.h"
#include "exchange/partition_plan.h"
#include "exchange/push_encoder.h"
#include "exchange/requests.h"
#include "scheduler/credit_queue.h"

namespace tug {

// A partition of a push that is not committed (push_table.h).
struct PartitionPush {
  enum class State : uint8_t {
    kQueued,
    kAnnounced,
    kSent,
    kReceived,
    kDeferred,
    kWanted,
    kCommitted
  };
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

  // Its turn is still to come, or to come again.
  bool unsent() const {
    return state == State::kQueued || state == State::kAnnounced || state == State::kDeferred ||
           state == State::kWanted;
  }
  // Neither waits for its turn nor is committed: the lane is to say something of it.
  bool unanswered() const {
    return state != State::kQueued && state != State::kWanted && state != State::kCommitted;
  }
  // Of the payload. REQUIRES: it has been sent, or is about to be.
  uint64_t payload_bytes() const { return codec == Codec::kFrames ? frames.size_bytes() : bytes; }
};

// A push that is not committed: a place in the table, used again by later ones.
struct OpenPush {
  PushRequest request;
  std::shared_ptr<const PartitionPlan> plan;  // that it was cut by
  std::vector<PartitionPush> partitions;      // as the plan's
  EncodedPush encoded;
  uint32_t uncommitted = 0;  // partitions; 0: the place is free
  uint32_t unreceived = 0;   // partitions that are neither received nor committed
  bool dropped = false;      // a partition at least
  bool lost = false;         // the same, with frees_gradients
  uint32_t next = 0;         // another open push of the same block and virtual worker

  const Partition& PartOf(uint32_t partition) const {
    return plan->of_block(request.block)[partition];
  }
  TraceEvent EventOf(TraceKind kind, uint32_t partition) const;
};

// Which pushes are open, found by what answers name: block, virtual worker and clock.
class UncommittedPushes {
 public:
  explicit UncommittedPushes(uint32_t blocks) : heads_(blocks) {}

  // Takes a place, whose partitions are the caller's to fill. REQUIRES: none of the same block,
  // virtual worker and clock is open.
  uint32_t Open(PushRequest request);
  // The place is free.
  void Close(uint32_t place);
  OpenPush& at(uint32_t place) { return *places_[place]; }
  size_t open() const { return open_; }

  struct Found {
    uint32_t place = 0;
    uint32_t partition = 0;
  };
  // The header comes from outside.
  std::optional<Found> Find(const WireHeader& header) const;

  // `see(place, push)` may close it.
  template <typename See>
  void ForEach(const See& see) {
    for (uint32_t place = 0; place < places_.size(); ++place) {
      if (places_[place]->uncommitted > 0) see(place, *places_[place]);
    }
  }
  template <typename See>
  void ForEachOf(uint32_t block, uint32_t virtual_worker, const See& see) const {
    for (uint32_t place = HeadOf(block, virtual_worker); place != kNone;
         place = places_[place]->next) {
      see(*places_[place]);
    }
  }

  // Of the block's pushes; kNothing: all are committed. Looks at each of their partitions.
  Awaited AwaitedOf(uint32_t block) const;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  uint32_t HeadOf(uint32_t block, uint32_t virtual_worker) const {
    const std::vector<uint32_t>& heads = heads_[block];
    return virtual_worker < heads.size() ? heads[virtual_worker] : kNone;
  }

  std::vector<std::unique_ptr<OpenPush>> places_;
  std::vector<uint32_t> free_places_;
  std::vector<std::vector<uint32_t>> heads_;  // by block and virtual worker: place
  size_t open_ = 0;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_UNCOMMITTED_PUSHES_H_
