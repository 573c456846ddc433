// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_CHECKS_RUN_WATCH_H_
#define TUG_LAB_SIMULATE_CHECKS_RUN_WATCH_H_

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
#include "blocks/segment_table.h"
#include "proto/job.pb.h"
#include "proto/wire.h"
#include "server/sync/live_set.h"
#include "transport/transport.h"

namespace tug {

// Hashes of the weights of a job without faults, one per whole block, by (block, version).
using WeightsByVersion = std::map<std::pair<uint32_t, uint64_t>, uint64_t>;

uint64_t HashOf(std::span<const float> weights);

// Observes a simulated job while it runs, and reports what must never happen. It judges by the
// messages that lanes get and send and the weights that workers end up with, not by what the state
// machines report of themselves. Checks:
//
//  - bits: where pushes are summed, a worker that waits for version v of a block gets the weights
//    of the job without faults (not with on_worker_loss SHRINK, which changes them);
//  - fence: a lane accepts pushes, and answers pulls, of its own view and timeline only;
//  - owner: in one view one lane serves a segment (not with ALL_REDUCE, where all lanes do);
//  - bound: with SSP, weights for clock c contain all pushes before c - staleness, of every virtual
//    worker that the lane waits for and that does not end before;
//  - order: a segment commits the clocks of a virtual worker one after the other;
//  - lost pull: a pull that waits at a lane, and not for credit, is not answered only because it
//    was repeated;
//  - sense: every message is valid for the lane that it arrives at.
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

  // State of a lane when it receives or sends a message.
  struct LaneState {
    uint32_t lane = 0;  // lane number
    uint32_t timeline = 0;
    uint32_t view = 0;
    const LiveSet* live = nullptr;
    std::span<const uint64_t> final_clocks = {};
  };
  // A lane begins a timeline with these clocks of a segment, by virtual worker.
  void OnFilled(const LaneState& lane, uint32_t segment, std::span<const uint64_t> clocks);
  // A lane continues with the segment at these clocks, by virtual worker: they include updates that
  // were not acknowledged.
  void OnTakeover(const LaneState& lane, uint32_t segment, std::span<const uint64_t> clocks);
  // A lane starts from scratch, or with another placement.
  void OnNewShard(const LaneState& lane) {
    held_.erase(lane.lane);
    outstanding_.erase(outstanding_.lower_bound({lane.lane, 0}),
                       outstanding_.upper_bound({lane.lane, ~PeerId{0}}));
  }
  // A lane entered a new view, and has forgotten waiting pulls.
  void OnView(const LaneState& lane) { held_.erase(lane.lane); }
  // Called around the delivery of a message to a lane. `as_sent`: as its sender sent it.
  bool IsHeld(const LaneState& lane, const WireHeader& as_sent, PeerId sender) const;
  void BeforeDelivery(const LaneState& lane, const WireHeader& as_sent, PeerId sender);
  void AfterDelivery();
  void OnSent(const LaneState& lane, const Outgoing& message);
  // A worker received all of a block.
  void OnPulled(uint32_t worker, uint32_t block, uint64_t version, std::span<const float> weights);
  // Bits of the job known from this run: `expected` of another one.
  const WeightsByVersion& seen() const { return seen_; }

  // A lane received an invalid message.
  void OnMalformed(const LaneState& lane, const WireHeader& header, uint64_t payload_bytes);

  void Violation(const std::string& text);
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  // Identity of a pull at a lane: sender, block, first segment, count, want, version, and the
  // sender's virtual workers.
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
  const bool one_owner_;    // per segment and view
  const bool knows_pulls_;  // an answer tells which pull it answers
  const uint64_t staleness_;
  const uint32_t virtual_workers_;
  const SegmentTable& table_;
  const TimeSource* time_ = nullptr;
  struct Delivery {
    bool under_way = false;
    LaneState lane;
    WireHeader header;
    PeerId sender = 0;
    bool was_held = false;  // and not for lack of credit
    bool answered = false;
    bool refused = false;
  };
  Delivery delivery_;
  std::map<uint32_t, std::set<PullKey>> held_;  // by lane
  // By lane and worker: numbers of answers that the worker has not acknowledged. While there are
  // any, others may be queued.
  std::map<std::pair<uint32_t, PeerId>, std::set<uint64_t>> outstanding_;
  // Where every push is an update: next clock by virtual worker, by (timeline, segment).
  std::optional<std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>>> committed_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> owner_;  // timeline, view, segment
  WeightsByVersion seen_;
  std::vector<std::string> violations_;
};

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_CHECKS_RUN_WATCH_H_
