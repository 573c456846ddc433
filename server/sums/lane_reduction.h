// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SUMS_LANE_REDUCTION_H_
#define TUG_SERVER_SUMS_LANE_REDUCTION_H_

// A lane's part in reducing sums among lanes (`exchange: ALL_REDUCE`): each lane sums the pushes of
// the worker paired with it, and the lanes all-reduce these local sums, one collective per segment.
// A state machine on top of RankGroup: no I/O, no clock, no thread.
//
//  1. Offer: copies the local sum of a segment, with its trailer (sum_trailer.h), into memory that
//     peers may read, in the collective's format.
//  2. All ranks start the same collectives in the same order, whatever order sums become complete
//     in: at every clock the blocks from last to first, as backward passes do, and a block's
//     segments in order. A segment offered early waits. At most kMaxInFlight collectives are in
//     flight.
//  3. `reduced`: called for finished sums, in any order; the result is in place in FP32, otherwise
//     widened into separate memory.
// Each segment is offered once per clock, and again only when its reduced sum is no longer used.
//
// Memory: one element of the collective for each of the lane's parameters and for trailers; with
// BF16 and FP16 also an FP32 element (buffer_bytes).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/memory/lease.h"
#include "blocks/segment_table.h"
#include "collective/rank_group.h"
#include "collective/schedules/schedule.h"
#include "proto/job.pb.h"
#include "server/sums/reduction_schedule.h"
#include "server/sums/sum_trailer.h"

namespace tug {

// Not thread-safe: owned by one lane.
class LaneReduction {
 public:
  // Limits on collectives in flight and on their bytes, except that one is always allowed: ranks
  // that have not started them yet buffer their messages.
  static constexpr size_t kMaxInFlight = 16;
  static constexpr uint64_t kMaxBytesInFlight = uint64_t{32} << 20;

  struct Options {
    RankGroupOptions group;       // peers are lanes; the group number is the timeline
    CollectiveConfig collective;  // with defaults filled in
  };
  struct Reduced {
    uint32_t segment = 0;
    SumFacts facts;  // of all ranks
  };
  struct Sinks {
    RankGroup::Sinks group;
    SendBuffers::NewBuffer new_buffer;  // memory that peers may read
    // Called only by HandBackOne; may call OnMessage and OnTick.
    std::function<void(const Reduced&)> reduced;
  };

  // REQUIRES: `table` outlives it; a world of at most kMaxTrailerRanks.
  LaneReduction(Options options, const SegmentTable& table, Sinks sinks);

  // The local sum of a segment is complete. Returns the memory of its reduced sum: readable from
  // `reduced` until the next Offer. REQUIRES: the segment's order as above, and its number of
  // elements.
  Lease Offer(uint32_t segment, std::span<const float> sum, const SumFacts& facts, absl::Time now);

  // REQUIRES: IsFor(kind).
  void OnMessage(Message message, absl::Time now) { group_.OnMessage(std::move(message), now); }
  static bool IsFor(MessageKind kind);
  // Call about every RankGroup::kTick.
  void OnTick(absl::Time now) { group_.OnTick(now); }
  // Sets which ranks are reached over a network (RankGroup). Call before the first Offer.
  void SetOverNetwork(std::vector<bool> over_network) {
    group_.SetOverNetwork(std::move(over_network));
  }
  // Processes one message; false: none is available.
  bool Work() { return group_.Work(); }
  // Passes one reduced sum to `reduced`; false: there is none. `reduced` may take long (an
  // optimizer step), so send pending messages first.
  bool HandBackOne(absl::Time now);
  // Whether the caller may wait for messages: no work is left. A call of `wake` means new work.
  bool ReadyToWait() { return FindFinished() == under_way_.end() && group_.ReadyToWait(); }

  // After an error nothing more is reduced. The message names the server at fault.
  absl::Status status() const;

  uint64_t buffer_bytes() const { return buffer_bytes_; }
  // Names of the algorithms used so far (collective/algorithms.h), in the order of their first use:
  // with AUTO they depend on the size of a segment.
  std::vector<std::string> algorithms() const;

 private:
  struct UnderWay {
    uint64_t number = 0;
    uint32_t segment = 0;
  };
  // Buffers of a segment: elements, then the trailer.
  struct Place {
    std::shared_ptr<AlignedBuffer> buffer;
    std::span<std::byte> bytes;
    std::span<float> result;  // `bytes` if FP32, else separate memory
    std::shared_ptr<AlignedBuffer> result_buffer;
    bool offered = false;  // offered, but not started
  };

  void MakeBlock(uint32_t block);
  const CollectiveSchedule& ScheduleOf(uint64_t bytes);
  void Start(absl::Time now);
  std::vector<UnderWay>::iterator FindFinished();
  void HandBack(uint32_t segment);

  const Options options_;
  const SegmentTable& table_;
  const Sinks sinks_;
  const ElementType type_;
  const uint64_t trailer_elements_;
  RankGroup group_;
  std::vector<uint32_t> order_;  // order of segments at each clock
  size_t next_ = 0;              // in order_
  std::vector<Place> places_;    // by segment; empty until its block is first offered
  std::vector<UnderWay> under_way_;
  uint64_t under_way_bytes_ = 0;
  struct SizedPlan {
    uint64_t bytes = 0;
    ReductionPlan plan;
  };
  std::vector<SizedPlan> plans_;  // few entries: segments have few sizes
  std::vector<float> trailer_;    // scratch
  absl::Status status_;           // error of Start
  uint64_t buffer_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_SERVER_SUMS_LANE_REDUCTION_H_
