// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_REPLICATED_JOB_TEST_SUPPORT_H_
#define TUG_SERVER_REPLICATED_JOB_TEST_SUPPORT_H_

// A job with a few lanes and workers, for tests of replicas: messages are lost, repeated and
// reordered, lanes are lost and join, segments move. This class decides placements, as a
// coordinator would.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "blocks/weights_payload.h"
#include "config/sync_mode.h"
#include "server/replicated_job_options.h"
#include "server/rough_network_test_support.h"
#include "server/shard/shard.h"

namespace tug {

class ReplicatedJob {
 public:
  using Options = ReplicatedJobOptions;
  using Placement = ReplicatedJobPlacement;
  static constexpr uint64_t kElements = Options::kElements;
  static constexpr uint32_t kSegmentsOfBlock = Options::kSegmentsOfBlock;
  static constexpr uint32_t kSegments = Options::kSegments;
  static constexpr uint32_t kVirtualWorkers = Options::kVirtualWorkers;
  static constexpr uint64_t kClocks = 12;
  static constexpr uint32_t kNobody = Placement::kNobody;
  struct Counts {
    uint64_t lost_lanes = 0, moves = 0, lost_workers = 0, other_views = 0;
    uint64_t filled = 0, updates = 0;        // kCopy messages delivered, kUpdate messages sent
    uint64_t old_views = 0;                  // messages that lanes refused
    uint64_t pulls = 0, pulls_of_lanes = 0;  // sent
  };

  explicit ReplicatedJob(const Options& options)
      : options_(options),
        per_push_(SyncModeOf(options.policy).update_per_push),
        random_(options.seed),
        table_(ReplicatedJobTable()) {
    for (uint32_t id = 0; id < kSegments; ++id) {
      const uint32_t lane = kFirstLane + id * options_.lanes / kSegments;
      owner_.push_back(lane);
      copy_.push_back(options_.copies ? Next(lane, options_.lanes) : kNobody);
    }
    next_lane_ = kFirstLane + options_.lanes;
    view_ = placement_ = 1;
    for (uint32_t i = 0; i < options_.lanes; ++i) StartLane(kFirstLane + i);
    const std::vector<std::vector<uint32_t>> carried = {{0, 1}, {2}};
    for (uint32_t w = 0; w < carried.size(); ++w) {
      workers_[w].virtual_workers = carried[w];
      workers_[w].view = view_;
      workers_[w].owner = owner_;
      Begin(w);
    }
  }

  void Run() {
    uint64_t steps = 0;
    while (!Done()) {
      ASSERT_LT(++steps, 400000u) << "stands still";
      ASSERT_FALSE(testing::Test::HasFailure());
      if (options_.faults && steps % 16 == 0) MaybeFault();
      AdvanceViews();
      if (network_.empty() || random_() % 40 == 0) Tick();
      if (!network_.empty()) DeliverOne();
    }
    // Delivers the messages still in flight.
    for (int i = 0; i < 4000; ++i) {
      AdvanceViews();
      if (network_.empty()) Tick();
      if (!network_.empty()) DeliverOne();
    }
    for (const auto& [number, lane] : lanes_) {
      counts_.old_views += lane->shard->counters().refused;
      EXPECT_EQ(lane->shard->counters().malformed, 0u) << "lane " << number;
      EXPECT_TRUE(lane->shard->CopiesInSync()) << "lane " << number;
    }
  }

  const Counts& counts() const { return counts_; }
  // Weights, m and v of a segment at its owner, and at its replica.
  using State = std::tuple<uint64_t, std::vector<float>, std::vector<float>, std::vector<float>>;
  State OwnerState(uint32_t id) {
    Shard& shard = *lanes_.at(owner_[id])->shard;
    return StateOf(shard, id, shard.version(id));
  }
  std::optional<State> CopyState(uint32_t id) {
    if (copy_[id] == kNobody) return std::nullopt;
    Shard& shard = *lanes_.at(copy_[id])->shard;
    return StateOf(shard, id, shard.copy_version(id));
  }
  // Sum of all pushes, which SGD with step size 1 subtracts from the weights.
  static float SumOfPushes() {
    float sum = 0;
    for (uint32_t vw = 0; vw < kVirtualWorkers; ++vw) {
      for (uint64_t clock = 0; clock < kClocks; ++clock) sum += Value(vw, clock);
    }
    return sum;
  }

 private:
  static constexpr uint32_t kFirstLane = 300;

  struct Lane {
    std::unique_ptr<Shard> shard;
    uint32_t view = 0;       // entered by the lane
    uint32_t placement = 0;  // entered by the lane
  };
  struct SegmentPull {
    std::vector<float> weights;  // empty: not arrived yet
    uint64_t version = 0;
  };
  struct Worker {
    std::vector<uint32_t> virtual_workers;
    uint32_t view = 0;
    std::vector<uint32_t> owner;  // in that view
    uint64_t clock = 0;
    bool computing = false;  // pulls have arrived, pushes are in flight
    std::vector<SegmentPull> pulls;
    std::map<std::pair<uint32_t, uint32_t>, bool> pushes;  // (vw, segment): committed
  };
  static uint32_t Next(uint32_t lane, uint32_t lanes) {
    return kFirstLane + (lane - kFirstLane + 1) % lanes;
  }
  static float Value(uint32_t vw, uint64_t clock) { return static_cast<float>(1 + vw + 7 * clock); }

  std::unique_ptr<Shard> MakeShard(uint32_t lane) {
    return std::make_unique<Shard>(
        ReplicatedJobShardOptions(options_, Placement{view_, placement_, owner_, copy_}, lane),
        table_,
        ShardSinks{.send = [this, lane](Outgoing m) { Send(LanePeer(lane), std::move(m)); },
                   .snapshot = [](const SegmentSnapshot&) {},
                   .notice = [](const ShardNotice& n) { ADD_FAILURE() << n.text; }});
  }
  void StartLane(uint32_t number) {
    auto lane = std::make_unique<Lane>();
    lane->shard = MakeShard(number);
    lane->view = view_;
    lane->placement = placement_;
    for (const uint32_t id : lane->shard->held()) {
      if (per_push_) continue;
      std::span<float> weights = lane->shard->weights(id);
      for (size_t i = 0; i < weights.size(); ++i) {
        weights[i] = 0.01f * static_cast<float>((i + id) % 17);
      }
    }
    lanes_[number] = std::move(lane);
  }

  // ---- views ----

  bool AllInSync() const {
    return std::all_of(lanes_.begin(), lanes_.end(), [&](const auto& lane) {
      return lane.second->placement == placement_ && lane.second->shard->CopiesInSync();
    });
  }
  void NewPlacement() { placement_ = ++view_; }

  uint32_t SomeLane() {
    auto lane = lanes_.begin();
    std::advance(lane, random_() % lanes_.size());
    return lane->first;
  }

  void MaybeFault() {
    switch (random_() % 24) {
      case 0:
        if (!options_.copies || !AllInSync() || lanes_.size() < 2) return;
        LoseLane(SomeLane());
        ++counts_.lost_lanes;
        return;
      case 1:
        if (!options_.copies || !AllInSync()) return;
        MoveSome();
        ++counts_.moves;
        return;
      case 2:
        ++view_;
        ++counts_.other_views;
        return;
      case 3:
        if (worker_lost_.has_value()) return;
        worker_lost_ = random_() % workers_.size();
        ++view_;
        ++counts_.lost_workers;
        return;
      case 4:  // at any time, in sync or not
        if (!options_.copies) return;
        RenewCopies();
        ++counts_.other_views;
        return;
    }
  }
  // A new lane replaces the lost one.
  void LoseLane(uint32_t lost) {
    lanes_.erase(lost);
    const uint32_t joined = next_lane_++;
    NewPlacement();
    for (uint32_t id = 0; id < kSegments; ++id) {
      if (owner_[id] == lost) {
        owner_[id] = std::exchange(copy_[id], joined);
        // No version that a worker has seen is lost.
        ASSERT_GE(lanes_.at(owner_[id])->shard->copy_version(id), seen_[id]) << "segment " << id;
      } else if (copy_[id] == lost) {
        copy_[id] = joined;
      }
    }
    lanes_[joined] = std::make_unique<Lane>();
  }
  // Owner and replica swap, or the replica becomes the owner and another lane gets the replica.
  void MoveSome() {
    NewPlacement();
    for (uint32_t id = 0; id < kSegments; ++id) {
      if (random_() % 2 == 0) continue;
      const uint32_t before = std::exchange(owner_[id], copy_[id]);
      copy_[id] = before;
      if (const uint32_t other = SomeLane(); random_() % 2 == 0 && other != owner_[id]) {
        copy_[id] = other;
      }
    }
  }
  // Moves replicas to other lanes, whether or not the old ones are in sync.
  void RenewCopies() {
    NewPlacement();
    for (uint32_t id = 0; id < kSegments; ++id) {
      const uint32_t other = SomeLane();
      if (random_() % 2 == 0 && other != owner_[id]) copy_[id] = other;
    }
  }

  // Lanes enter the newest view one by one, then workers do.
  void AdvanceViews() {
    bool all = true;
    for (auto& [number, lane] : lanes_) {
      if (lane->view == view_) continue;
      all = false;
      if (random_() % 8 == 0) ToView(number, *lane);
    }
    if (!all) return;
    for (auto& [w, worker] : workers_) {
      if (worker.view == view_ || random_() % 8 != 0) continue;
      worker.view = view_;
      worker.owner = owner_;
      if (worker_lost_ == w) {
        Restart(w);
      } else {
        SendAgain(w);
      }
    }
    const bool everybody = std::all_of(workers_.begin(), workers_.end(),
                                       [&](const auto& w) { return w.second.view == view_; });
    if (everybody) worker_lost_.reset();
  }
  void ToView(uint32_t number, Lane& lane) {
    if (lane.placement != placement_) {
      std::unique_ptr<Shard> shard = MakeShard(number);
      const absl::Status taken = shard->InheritFrom(lane.shard.get(), now_);
      ASSERT_TRUE(taken.ok()) << taken;
      lane.shard = std::move(shard);
      lane.placement = placement_;
    } else {
      lane.shard->SetView(view_, LiveSet(kVirtualWorkers), now_);
    }
    lane.view = view_;
  }

  // ---- workers ----

  // A new process replaces the worker, from the first clock that some lane lacks.
  void Restart(uint32_t w) {
    Worker& worker = workers_[w];
    uint64_t clock = kClocks;
    for (const auto& [number, lane] : lanes_) {
      const std::vector<uint64_t> clocks = lane->shard->Clocks();
      for (const uint32_t vw : worker.virtual_workers) clock = std::min(clock, clocks[vw]);
    }
    worker.clock = clock;
    Begin(w);
  }
  void Begin(uint32_t w) {
    Worker& worker = workers_[w];
    worker.pulls.assign(kSegments, {});
    worker.pushes.clear();
    worker.computing = false;
    SendAgain(w);
  }
  // Calls `send(first, end)` for each run of segments of one block and owner for which
  // `wanted(id)`.
  template <typename Wanted, typename Send>
  void ForRuns(const Worker& worker, Wanted wanted, Send send) {
    for (uint32_t id = 0; id < kSegments;) {
      uint32_t end = id + 1;
      while (wanted(id) && end % kSegmentsOfBlock != 0 && wanted(end) &&
             worker.owner[end] == worker.owner[id]) {
        ++end;
      }
      if (wanted(id)) send(id, end);
      id = end;
    }
  }
  WireHeader RunHeader(MessageKind kind, uint32_t w, uint32_t first, uint32_t end) const {
    WireHeader header;
    header.kind = kind;
    header.job = 9;
    header.timeline = 1;
    header.view = workers_.at(w).view;
    header.sender = WorkerPeer(w);
    header.block = first / kSegmentsOfBlock;
    header.first_segment = first % kSegmentsOfBlock;
    header.segment_count = end - first;
    return header;
  }
  void SendAgain(uint32_t w) {
    const Worker& worker = workers_[w];
    if (worker.clock >= kClocks) return;
    if (!worker.computing) {
      ForRuns(
          worker, [&](uint32_t id) { return worker.pulls[id].weights.empty(); },
          [&](uint32_t first, uint32_t end) { SendPull(w, first, end); });
      return;
    }
    for (const uint32_t vw : worker.virtual_workers) {
      ForRuns(
          worker,
          [&](uint32_t id) {
            return !worker.pushes.at({vw, id});
          },
          [&](uint32_t first, uint32_t end) { SendPush(w, vw, first, end); });
    }
  }
  void SendPull(uint32_t w, uint32_t first, uint32_t end) {
    const Worker& worker = workers_[w];
    WireHeader header = RunHeader(MessageKind::kPull, w, first, end);
    header.codec = WeightsCodecOf(options_.pull_format);
    header.want = per_push_ ? Want::kAtLeast : Want::kExact;
    header.clock = worker.clock;
    header.version = kNoVersion;  // under CHANGES: these workers hold no weights
    header.virtual_worker = worker.virtual_workers[0];
    header.virtual_worker_count = static_cast<uint16_t>(worker.virtual_workers.size());
    network_.Send(LanePeer(PullLane(w, first)), header, Lease());
    ++counts_.pulls;
  }
  uint32_t PullLane(uint32_t w, uint32_t id) const {
    const uint32_t owner = workers_.at(w).owner[id];
    if (options_.cached_hosts == 0) return owner;
    const PullLanes lanes =
        ReplicatedJobPullLanes(workers_.at(w).owner, 1 + w % options_.cached_hosts);
    const auto stands_in = lanes.find(owner);
    return stands_in == lanes.end() ? owner : stands_in->second;
  }
  // For sums, the gradient depends on the weights that were pulled.
  void SendPush(uint32_t w, uint32_t vw, uint32_t first, uint32_t end) {
    const Worker& worker = workers_[w];
    WireHeader header = RunHeader(MessageKind::kPush, w, first, end);
    header.virtual_worker = vw;
    header.virtual_worker_count = 1;
    header.clock = worker.clock;
    header.token_count = 1;
    header.version = ~uint64_t{0} - 1;
    std::vector<float> gradient;
    for (uint32_t id = first; id < end; ++id) {
      header.version = std::min(header.version, worker.pulls[id].version);
      const std::vector<float>& weights = worker.pulls[id].weights;
      for (size_t i = 0; i < kElements; ++i) {
        gradient.push_back(per_push_ ? Value(vw, worker.clock)
                                     : weights[i] * static_cast<float>(1 + vw) +
                                           0.1f * static_cast<float>((i + worker.clock) % 5));
      }
    }
    Lease payload = ReplicatedJobPushPayload(options_, first, gradient, header);
    network_.Send(LanePeer(worker.owner[first]), header, std::move(payload));
  }

  void OnAnswer(uint32_t w, const Message& message) {
    const WireHeader& header = message.header;
    Worker& worker = workers_[w];
    const uint32_t first = header.block * kSegmentsOfBlock + header.first_segment;
    const uint32_t end = first + header.segment_count;
    if (header.kind == MessageKind::kCommitted)
      See(first, header.version);  // a repeat does not raise it
    for (uint32_t id = first; id < end && header.kind == MessageKind::kWeights; ++id) {
      See(id, header.version);
    }
    switch (header.kind) {
      case MessageKind::kWeights:
        if (worker.computing || header.clock != worker.clock) return;
        for (uint32_t id = first; id < end; ++id) {
          worker.pulls[id] = {Floats(message, id - first), header.version};
        }
        break;
      case MessageKind::kCommitted:
        if (!worker.computing || header.clock != worker.clock) return;
        for (uint32_t id = first; id < end; ++id) worker.pushes[{header.virtual_worker, id}] = true;
        break;
      case MessageKind::kPushWanted:
        if (worker.computing && header.clock == worker.clock && header.view == worker.view) {
          SendPush(w, header.virtual_worker, first, end);
        }
        return;
      default:
        return;
    }
    if (worker.computing) {
      const bool all = std::all_of(worker.pushes.begin(), worker.pushes.end(),
                                   [](const auto& push) { return push.second; });
      if (!all) return;
      ++worker.clock;
      return Begin(w);
    }
    const bool all = std::all_of(worker.pulls.begin(), worker.pulls.end(),
                                 [](const SegmentPull& pull) { return !pull.weights.empty(); });
    if (!all) return;
    worker.computing = true;
    for (const uint32_t vw : worker.virtual_workers) {
      for (uint32_t id = 0; id < kSegments; ++id) worker.pushes[{vw, id}] = false;
    }
    SendAgain(w);
  }
  std::vector<float> Floats(const Message& message, uint32_t part) const {
    std::vector<float> floats(kElements);
    const Codec codec = message.header.codec;
    const size_t bytes = WeightsBytes(codec, kElements);
    DecodeWeights(codec, table_, 0, 1, message.payload.bytes().subspan(part * bytes, bytes),
                  floats);
    return floats;
  }
  void See(uint32_t id, uint64_t version) { seen_[id] = std::max(seen_[id], version); }

  bool Done() const {
    return std::all_of(workers_.begin(), workers_.end(),
                       [](const auto& worker) { return worker.second.clock >= kClocks; });
  }

  // ---- network ----

  void Send(PeerId from, Outgoing outgoing) {
    outgoing.header.sender = from;
    outgoing.header.payload_bytes = outgoing.payload.size_bytes();
    counts_.pulls_of_lanes += outgoing.header.kind == MessageKind::kPull ? 1 : 0;
    counts_.updates += outgoing.header.kind == MessageKind::kUpdate ? 1 : 0;
    network_.Send(outgoing.to, outgoing.header, outgoing.payload);
  }
  void DeliverOne() {
    std::optional<RoughNetwork::Flying> next = network_.Take(options_.rough, random_);
    if (!next.has_value()) return;
    RoughNetwork::Flying& flying = *next;
    if (IsWorker(flying.to)) return OnAnswer(flying.to & ~kWorkerBit, flying.message);
    const auto lane = lanes_.find(flying.to - LanePeer(0));
    if (lane == lanes_.end() || lane->second->shard == nullptr) return;  // lost, or joining
    const MessageKind kind = flying.message.header.kind;
    counts_.filled += kind == MessageKind::kCopy ? 1 : 0;
    lane->second->shard->OnMessage(std::move(flying.message), now_);
  }
  void Tick() {
    now_ += absl::Milliseconds(50);
    for (auto& [number, lane] : lanes_) {
      if (lane->shard != nullptr) lane->shard->OnTick(now_);
    }
    if (now_ < again_at_) return;
    again_at_ = now_ + absl::Milliseconds(500);
    for (auto& [w, worker] : workers_) SendAgain(w);
  }

  State StateOf(Shard& shard, uint32_t id, uint64_t version) const {
    const auto copy = [](std::span<float> s) { return std::vector<float>(s.begin(), s.end()); };
    return {version, copy(shard.weights(id)), copy(shard.m(id)), copy(shard.v(id))};
  }

  const Options options_;
  const bool per_push_;
  std::mt19937 random_;
  const SegmentTable table_;
  absl::Time now_ = absl::UnixEpoch();
  absl::Time again_at_ = absl::UnixEpoch() + absl::Milliseconds(500);
  uint32_t view_ = 0;
  uint32_t placement_ = 0;
  uint32_t next_lane_ = 0;
  std::vector<uint32_t> owner_;  // by segment
  std::vector<uint32_t> copy_;
  std::map<uint32_t, std::unique_ptr<Lane>> lanes_;
  std::map<uint32_t, Worker> workers_;
  std::optional<uint32_t> worker_lost_;
  std::map<uint32_t, uint64_t> seen_;  // by segment: newest version that a worker has seen
  RoughNetwork network_;
  Counts counts_;
};

}  // namespace tug

#endif  // TUG_SERVER_REPLICATED_JOB_TEST_SUPPORT_H_
