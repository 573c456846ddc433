#ifndef TUG_SERVER_LANE_REDUCTION_H_
#define TUG_SERVER_LANE_REDUCTION_H_

// A lane's part in reducing sums among lanes (`exchange: ALL_REDUCE`): each lane sums the pushes of
// the worker beside it, and these local sums are added up by an all-reduce a segment. A state
// machine on top of RankGroup: no I/O, no clock, no thread.
//
//  1. Offer: the local sum of a segment is copied, with its trailer (sum_trailer.h), into memory
//     that peers may read, in the collective's format.
//  2. All ranks start the same collectives in the same order, whatever order sums become complete
//     in: at every clock the blocks from last to first, as backward passes do, and a block's
//     segments in order. A segment that is offered early waits for its turn. kMostUnderWay are
//     under way at once.
//  3. `reduced`: what is finished, in any order; in FP32 where the collective wrote it, else
//     widened into memory of its own.
// A segment is offered once a clock, and next when its reduced sum is of no use any more.
//
// Memory: an element of the collective for each of the lane's parameters and for trailers; in BF16
// and FP16 an FP32 element beside it (buffer_bytes).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/lease.h"
#include "collective/rank_group.h"
#include "collective/schedule.h"
#include "exchange/segment_table.h"
#include "proto/job.pb.h"
#include "server/sum_trailer.h"

namespace tug {

// Not thread-safe: owned by one lane.
class LaneReduction {
 public:
  // Collectives under way, and their bytes, but always one; ranks that have not come to them yet
  // keep what is sent.
  static constexpr size_t kMostUnderWay = 16;
  static constexpr uint64_t kMostBytesUnderWay = uint64_t{32} << 20;

  struct Options {
    RankGroupOptions group;       // its peers are lanes; its number the timeline
    CollectiveConfig collective;  // with its defaults
  };
  struct Reduced {
    uint32_t segment = 0;
    SumFacts facts;  // of all ranks
  };
  struct Sinks {
    RankGroup::Sinks group;
    SendBuffers::NewBuffer new_buffer;  // memory that peers may read
    // Called by HandBackOne alone; may call OnMessage and OnTick.
    std::function<void(const Reduced&)> reduced;
  };

  // REQUIRES: `table` outlives it; a world of at most kMostTrailerRanks.
  LaneReduction(Options options, const SegmentTable& table, Sinks sinks);

  // The local sum of a segment is complete. Returns where its reduced sum will be: readable from
  // `reduced` to the next Offer. REQUIRES: as above; the segment's elements.
  Lease Offer(uint32_t segment, std::span<const float> sum, const SumFacts& facts, absl::Time now);

  // Of kinds that IsFor.
  void OnMessage(Message message, absl::Time now) { group_.OnMessage(std::move(message), now); }
  static bool IsFor(MessageKind kind);
  // To be called every RankGroup::kTick or so.
  void OnTick(absl::Time now) { group_.OnTick(now); }
  // Which ranks are reached over a network (RankGroup). Before the first Offer.
  void SetOverNetwork(std::vector<bool> over_network) {
    group_.SetOverNetwork(std::move(over_network));
  }
  // Applies one message; false: there is none at hand.
  bool Work() { return group_.Work(); }
  // Hands a reduced sum back; false: there is none. What is made of it may take long, an optimizer
  // step of the whole model: before it, what was sent should have left.
  bool HandBackOne(absl::Time now);
  // Whether to wait for messages, once there is nothing to do. Else, or if `wake` is called: there
  // is.
  bool ReadyToWait() { return FindFinished() == under_way_.end() && group_.ReadyToWait(); }

  // After an error nothing more is reduced; names the server at fault.
  absl::Status status() const;

  uint64_t buffer_bytes() const { return buffer_bytes_; }

 private:
  struct UnderWay {
    uint64_t number = 0;
    uint32_t segment = 0;
  };
  // Of a segment: elements, then the trailer.
  struct Place {
    std::shared_ptr<AlignedBuffer> buffer;
    std::span<std::byte> bytes;
    std::span<float> result;  // as `bytes` in FP32, or in memory of its own
    std::shared_ptr<AlignedBuffer> result_buffer;
    bool offered = false;  // and not started
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
  std::vector<uint32_t> order_;  // of segments at each clock
  size_t next_ = 0;              // in order_
  std::vector<Place> places_;    // by segment; empty until its block is first offered
  std::vector<UnderWay> under_way_;
  uint64_t under_way_bytes_ = 0;
  struct SizedSchedule {
    uint64_t bytes = 0;
    CollectiveSchedule schedule;
  };
  std::vector<SizedSchedule> schedules_;  // few: segments have few sizes
  std::vector<float> trailer_;            // scratch
  absl::Status status_;                   // of Start
  uint64_t buffer_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_SERVER_LANE_REDUCTION_H_
