#ifndef TUG_SIMULATE_RUN_WATCH_H_
#define TUG_SIMULATE_RUN_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/time_source.h"
#include "exchange/segment_table.h"
#include "proto/job.pb.h"
#include "proto/wire.h"
#include "server/live_set.h"
#include "transport/transport.h"

namespace tug {

// Bits of the weights of a job without faults, by (block, version): a hash of all of the block.
using WeightsByVersion = std::map<std::pair<uint32_t, uint64_t>, uint64_t>;

uint64_t HashOf(std::span<const float> weights);

// Looks at a simulated job from outside while it runs, and says what must never happen: from the
// messages that lanes get and send and the weights that workers end up with, not from what the
// state machines say of themselves. What it checks:
//
//  - bits: where pushes are summed, a worker that waits for version v of a block gets the weights
//    that the job without faults has (not with on_worker_loss SHRINK, which changes them);
//  - fence: a lane takes pushes, and answers pulls, of its own view and timeline only;
//  - owner: in one view one lane serves a segment (not with ALL_REDUCE, where all lanes do);
//  - bound: with SSP, weights for clock c hold all pushes before c - staleness, of every virtual
//    worker that the lane waits for and that comes so far;
//  - order: of a virtual worker, a segment commits one clock after the other;
//  - lost pull: a pull that waits at a lane, and not for credit, is not answered just because it is
//    asked for again;
//  - sense: every message makes sense to the lane that it comes to.
//
// Only the first few violations are kept. Not thread-safe.
class RunWatch {
 public:
  struct Options {
    const WeightsByVersion* expected = nullptr;  // null: bits are not checked
  };
  // REQUIRES: `table` and what `options` points to outlive it.
  RunWatch(Options options, const JobConfig& config, const SegmentTable& table);

  // The run begins. REQUIRES: `time` outlives it.
  void Begin(const TimeSource& time) { time_ = &time; }

  // A lane as it is when it gets or sends something.
  struct LaneState {
    uint32_t lane = 0;  // number
    uint32_t timeline = 0;
    uint32_t view = 0;
    const LiveSet* live = nullptr;
    std::span<const uint64_t> final_clocks = {};
  };
  // A lane begins a timeline with these clocks of a segment, by virtual worker.
  void OnFilled(const LaneState& lane, uint32_t segment, std::span<const uint64_t> clocks);
  // A lane goes on with the segment and these clocks, by virtual worker: also with updates that
  // nobody has been told of.
  void OnTakeover(const LaneState& lane, uint32_t segment, std::span<const uint64_t> clocks);
  // A lane begins anew, or with another placement.
  void OnNewShard(const LaneState& lane) {
    held_.erase(lane.lane);
    outstanding_.erase(outstanding_.lower_bound({lane.lane, 0}),
                       outstanding_.upper_bound({lane.lane, ~PeerId{0}}));
  }
  // A lane came to a new view, and has forgotten who waits.
  void OnView(const LaneState& lane) { held_.erase(lane.lane); }
  // Around a message's delivery to a lane; `as_sent`: as its sender gave it.
  bool IsHeld(const LaneState& lane, const WireHeader& as_sent, PeerId sender) const;
  void BeforeDelivery(const LaneState& lane, const WireHeader& as_sent, PeerId sender);
  void AfterDelivery();
  void OnSent(const LaneState& lane, const Outgoing& message);
  // All of a block came to a worker.
  void OnPulled(uint32_t worker, uint32_t block, uint64_t version, std::span<const float> weights);
  // Which of the job's bits are known from this run: as `expected` of another one.
  const WeightsByVersion& seen() const { return seen_; }

  // A message made no sense to a lane.
  void OnMalformed(const LaneState& lane, const WireHeader& header, uint64_t payload_bytes);

  void Violation(const std::string& text);
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  // What tells pulls of a lane apart: sender, block, first segment, count, want, version, and whom
  // the sender carries.
  using PullKey =
      std::tuple<PeerId, uint32_t, uint32_t, uint32_t, int, uint64_t, uint32_t, uint32_t>;
  static PullKey KeyOf(const WireHeader& header, PeerId worker);
  void CheckServed(const LaneState& lane, const Outgoing& message);
  void CheckBound(const LaneState& lane, const WireHeader& served);
  void CheckOwner(const LaneState& lane, uint32_t segment);
  void NoteCommitted(const LaneState& lane, const WireHeader& push);
  // REQUIRES: every push is an update.
  std::vector<uint64_t>& Committed(const LaneState& lane, uint32_t segment);

  const Options options_;
  const bool bounded_;
  const bool one_owner_;    // of a segment in a view
  const bool knows_pulls_;  // an answer says which pull it answers
  const uint64_t staleness_;
  const uint32_t virtual_workers_;
  const SegmentTable& table_;
  const TimeSource* time_ = nullptr;
  struct Delivery {
    bool under_way = false;
    LaneState lane;
    WireHeader header;
    PeerId sender = 0;
    bool was_held = false;  // and not for want of credit
    bool answered = false;
    bool refused = false;
  };
  Delivery delivery_;
  std::map<uint32_t, std::set<PullKey>> held_;  // by lane
  // By lane and worker: numbers of answers that the worker has not acknowledged. While there are
  // any others may wait for their turn.
  std::map<std::pair<uint32_t, PeerId>, std::set<uint64_t>> outstanding_;
  // Where every push is an update, by (timeline, segment): by virtual worker, the next clock.
  std::optional<std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>>> committed_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> owner_;  // timeline, view, segment
  WeightsByVersion seen_;
  std::vector<std::string> violations_;
};

}  // namespace tug

#endif  // TUG_SIMULATE_RUN_WATCH_H_
