// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_UNCOMMITTED_PUSHES_H_
#define TUG_EXCHANGE_UNCOMMITTED_PUSHES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "blocks/partition_plan.h"
#include "blocks/requests.h"
#include "exchange/awaited.h"
#include "exchange/encode/link_rate.h"
#include "exchange/encode/push_encoder.h"
#include "scheduler/credit_queue.h"

namespace tug {

// A partition of an uncommitted push (push_table.h).
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
  CreditQueue::Ticket ticket = 0;  // until committed
  uint64_t bytes = 0;              // upper bound on the payload; its credit
  Lease frames;                    // kFrames: the payload, once encoded
  LinkRate::Sent sent = {};        // with comm.push_codec.auto
  bool probes = false;             // sent as a probe of its link's rate, not acknowledged yet
  uint64_t version = 0;            // of the weights that the gradient was computed with
  absl::Time due;                  // time of the next resend
  absl::Duration patience;         // time from the last send to `due`
  // When the job is traced: when it was queued, and sent.
  int64_t queued_ns = 0;
  int64_t sent_ns = 0;

  // Waits for its turn, for the first time or again.
  bool unsent() const {
    return state == State::kQueued || state == State::kAnnounced || state == State::kDeferred ||
           state == State::kWanted;
  }
  // A reply from the lane is due: neither waiting for its turn nor committed.
  bool unanswered() const {
    return state != State::kQueued && state != State::kWanted && state != State::kCommitted;
  }
  // Actual payload size. REQUIRES: it has been sent, or is about to be.
  uint64_t payload_bytes() const { return codec == Codec::kFrames ? frames.size_bytes() : bytes; }
};

// An uncommitted push: a slot of the table, reused by later ones.
struct OpenPush {
  PushRequest request;
  std::shared_ptr<const PartitionPlan> plan;  // the plan that it was partitioned by
  std::vector<PartitionPush> partitions;      // by the plan's partitions
  EncodedPush encoded;
  uint32_t uncommitted = 0;  // partitions; 0: the slot is free
  uint32_t unreceived = 0;   // partitions neither received nor committed
  bool dropped = false;      // at least one partition was dropped
  bool lost = false;         // with frees_gradients: dropped means lost
  uint32_t next = 0;         // slot of the next open push of the same block and virtual worker

  const Partition& PartOf(uint32_t partition) const {
    return plan->of_block(request.block)[partition];
  }
  TraceEvent EventOf(TraceKind kind, uint32_t partition) const;
};

// Open pushes, indexed by the fields of a reply: block, virtual worker and clock.
class UncommittedPushes {
 public:
  explicit UncommittedPushes(uint32_t blocks) : heads_(blocks) {}

  // Allocates a slot and returns its index; the caller fills the partitions. REQUIRES: no open push
  // of the same block, virtual worker and clock.
  uint32_t Open(PushRequest request);
  // Frees the slot.
  void Close(uint32_t place);
  OpenPush& at(uint32_t place) { return *places_[place]; }
  size_t open() const { return open_; }

  struct Found {
    uint32_t place = 0;
    uint32_t partition = 0;
  };
  // Finds the partition that a reply refers to. `header` is untrusted.
  std::optional<Found> Find(const WireHeader& header) const;

  // `see(place, push)` may close the push.
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

  // State of the block's pushes; kNothing: all are committed. Cost: linear in their partitions.
  Awaited AwaitedOf(uint32_t block) const;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  uint32_t HeadOf(uint32_t block, uint32_t virtual_worker) const {
    const std::vector<uint32_t>& heads = heads_[block];
    return virtual_worker < heads.size() ? heads[virtual_worker] : kNone;
  }

  std::vector<std::unique_ptr<OpenPush>> places_;
  std::vector<uint32_t> free_places_;
  std::vector<std::vector<uint32_t>> heads_;  // by block and virtual worker: first slot
  size_t open_ = 0;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_UNCOMMITTED_PUSHES_H_
