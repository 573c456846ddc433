// SPDX-License-Identifier: Apache-2.0
// Rules that hold for every sync policy under any network: a lane and workers whose messages are
// lost, repeated and reordered at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "config/sync_mode.h"
#include "server/shard/shard.h"
#include "server/sums/push_frames_test_support.h"

namespace tug {
namespace {

constexpr uint32_t kVirtualWorkers = 5;  // 0 and 1 belong to one worker
constexpr uint32_t kPartitions = 3;
constexpr uint64_t kElements = 1024;
constexpr uint64_t kClocks = 12;
constexpr uint64_t kStaleness = 2;
// SSP, ASP: end of each virtual worker's clocks.
constexpr uint64_t kEnds[] = {12, 12, 7, 12, 10};

uint32_t WorkerOf(uint32_t vw) { return vw == 0 ? 0 : vw - 1; }
std::vector<uint32_t> VirtualWorkersOf(uint32_t worker) {
  return worker == 0 ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{worker + 1};
}
constexpr uint32_t kWorkers = kVirtualWorkers - 1;

// Value of every element that a virtual worker pushes at a clock: a distinct whole number, exact in
// bf16. Pushes with an odd virtual worker + clock are frames.
float Value(uint32_t vw, uint64_t clock) { return static_cast<float>(1 + vw + 7 * clock); }

class Cluster {
 public:
  Cluster(SyncConfig::Policy policy, uint32_t seed)
      : mode_(SyncModeOf(policy)),
        bound_(policy == SyncConfig::SSP ? kStaleness : kMaxLead),
        random_(seed),
        table_(Table()),
        shard_(Options(policy, seed), table_,
               {.send = [this](Outgoing m) { OnAnswer(m.header); },
                .snapshot = [](const SegmentSnapshot&) {},
                .notice = [](const ShardNotice& n) { ADD_FAILURE() << n.text; },
                .record = [this](const OrderRecord& r) { OnUpdate(r); }}) {
    for (uint32_t w = 0; w < kWorkers; ++w) Begin(w);
  }

  void Run() {
    uint64_t idle = 0;
    while (!Done()) {
      ASSERT_FALSE(testing::Test::HasFailure());
      if (to_lane_.empty()) {
        ASSERT_LT(++idle, 2000u) << "stands still";
        if (idle > 100) AnnounceEnds();
        now_ += absl::Seconds(1);
        shard_.OnTick(now_);
        SendAgain();
        continue;
      }
      if (random_() % 500 == 0) AnnounceEnds();
      const size_t at = random_() % to_lane_.size();
      const WireHeader header = to_lane_[at];
      to_lane_.erase(to_lane_.begin() + static_cast<ptrdiff_t>(at));
      if (random_() % 8 == 0) continue;                    // lost
      if (random_() % 8 == 0) to_lane_.push_back(header);  // repeated
      Deliver(header);
    }
    AnnounceEnds();
    ExpectWeights();
    ExpectClocks();
    EXPECT_EQ(shard_.counters().malformed, 0u);
  }
  const ShardCounters& counters() const { return shard_.counters(); }

 private:
  struct Push {
    WireHeader header;
    std::optional<MessageKind> end;  // kCommitted or kDropped
    bool wanted = true;              // unused
  };
  struct Worker {
    uint64_t clock = 0;
    std::vector<std::optional<uint64_t>> versions;  // by partition: version of the weights it has
  };

  static SegmentTable Table() {
    BlockTable blocks;
    for (uint32_t b = 0; b < kPartitions; ++b) {
      blocks.add_blocks()->add_tensors()->add_shape(2 * kElements);
    }
    return *SegmentTable::Create(blocks, kElements);
  }
  static ShardOptions Options(SyncConfig::Policy policy, uint32_t seed) {
    ShardOptions options;
    options.virtual_workers = kVirtualWorkers;
    options.optimizer.set_algorithm(OptimizerConfig::SGD);
    options.optimizer.set_schedule(OptimizerConfig::CONSTANT);
    options.optimizer.set_learning_rate(1);
    options.optimizer.set_clip(OptimizerConfig::OFF);
    options.sync.set_policy(policy);
    options.sync.set_staleness(kStaleness);
    options.sync.set_backups(1);
    options.sync.set_staleness_scaling(SyncConfig::NONE);
    options.lane_of_segment.assign(2 * kPartitions, 0);
    options.block_names = {"a", "b", "c"};
    options.resend_after = absl::Seconds(3);
    options.parking_bytes = seed % 3 * 2 * kElements * sizeof(float);
    return options;
  }

  uint64_t End(uint32_t worker) const {
    return mode_.update_per_push ? kEnds[VirtualWorkersOf(worker)[0]] : kClocks;
  }
  // The coordinator announces the ends at a random time, at the latest when all wait for a virtual
  // worker that has reached its end.
  void AnnounceEnds() {
    ends_said_ = true;
    shard_.SetFinalClocks(kEnds, kClocks, now_);
  }

  // A worker begins its clock: pulls every partition.
  void Begin(uint32_t w) {
    Worker& worker = workers_[w];
    worker.versions.assign(kPartitions, std::nullopt);
    for (uint32_t p = 0; p < kPartitions; ++p) SendPull(w, p);
  }
  void SendPull(uint32_t w, uint32_t partition) {
    WireHeader pull;
    pull.kind = MessageKind::kPull;
    pull.want = Want::kAtLeast;
    pull.sender = WorkerPeer(w);
    pull.block = partition;
    pull.segment_count = 2;
    pull.clock = workers_[w].clock;
    pull.virtual_worker = VirtualWorkersOf(w)[0];
    pull.virtual_worker_count = static_cast<uint16_t>(VirtualWorkersOf(w).size());
    to_lane_.push_back(pull);
  }
  void SendAgain() {
    for (auto& [key, push] : pushes_) {
      if (!push.end.has_value()) to_lane_.push_back(push.header);
    }
    for (auto& [w, worker] : workers_) {
      if (worker.clock >= End(w)) continue;
      for (uint32_t p = 0; p < kPartitions; ++p) {
        if (!worker.versions[p].has_value()) SendPull(w, p);
      }
    }
  }

  void Deliver(const WireHeader& header) {
    if (header.kind != MessageKind::kPush) return shard_.OnMessage({header, Lease()}, now_);
    auto gradient = std::make_shared<std::vector<float>>(
        2 * kElements, Value(header.virtual_worker, header.clock));
    if ((header.virtual_worker + header.clock) % 2 == 0) {
      return shard_.OnMessage({header, Lease(gradient, std::span<const float>(*gradient))}, now_);
    }
    WireHeader encoded = header;
    encoded.codec = Codec::kFrames;
    const Home home = random_() % 2 == 0 ? Home::kSender : Home::kReceiver;
    Lease payload = LeaseOf(EncodeFrames(*gradient, kElements, {kBf16Frame, kFp32Frame}));
    shard_.OnMessage({encoded, std::move(payload), home}, now_);
  }

  void OnAnswer(const WireHeader& answer) {
    if (answer.kind == MessageKind::kWeights) ExpectServable(answer);
    if (random_() % 8 == 0) return;  // lost
    if (answer.kind == MessageKind::kWeights) return OnWeights(answer);
    const auto found = pushes_.find({answer.virtual_worker, answer.clock, answer.block});
    ASSERT_NE(found, pushes_.end());
    Push& push = found->second;
    switch (answer.kind) {
      case MessageKind::kCommitted:
      case MessageKind::kDropped:
        EXPECT_TRUE(!push.end.has_value() || *push.end == answer.kind)
            << "virtual worker " << answer.virtual_worker << ", clock " << answer.clock;
        EXPECT_TRUE(answer.kind == MessageKind::kCommitted || mode_.skips_steps);
        push.end = answer.kind;
        break;
      case MessageKind::kPushWanted:
        to_lane_.push_back(push.header);
        break;
      default:
        EXPECT_TRUE(answer.kind == MessageKind::kReceived || answer.kind == MessageKind::kDeferred);
    }
  }

  // The lane has just decided to serve these weights.
  void ExpectServable(const WireHeader& weights) {
    const uint32_t w = weights.sender & ~kWorkerBit;
    if (!mode_.update_per_push) return;
    const uint64_t clock = weights.clock;
    for (uint32_t id = 2 * weights.block; id < 2 * weights.block + 2; ++id) {
      for (uint32_t vw = 0; vw < kVirtualWorkers; ++vw) {
        if (ends_said_ && next_[id][vw] == kEnds[vw]) continue;  // no more pushes will come
        EXPECT_GE(next_[id][vw] + (WorkerOf(vw) == w ? 0 : bound_), clock)
            << "segment " << id << ", virtual worker " << vw;
      }
    }
  }

  void OnWeights(const WireHeader& weights) {
    const uint32_t w = weights.sender & ~kWorkerBit;
    Worker& worker = workers_[w];
    if (worker.clock >= End(w) || worker.versions[weights.block].has_value()) return;
    // Late answers.
    if (mode_.update_per_push && weights.clock != worker.clock) return;
    if (!mode_.update_per_push && weights.version < worker.clock) return;
    EXPECT_TRUE(!mode_.in_place || weights.version == worker.clock);
    worker.versions[weights.block] = weights.version;
    if (mode_.skips_steps && weights.version > worker.clock) {  // the others are ahead
      worker.clock = weights.version;
      for (uint32_t p = 0; p < kPartitions; ++p) {
        if (worker.versions[p].has_value() && *worker.versions[p] >= worker.clock) continue;
        worker.versions[p].reset();
        if (worker.clock < End(w)) SendPull(w, p);
      }
      if (worker.clock >= End(w)) return;
    }
    if (std::all_of(worker.versions.begin(), worker.versions.end(),
                    [](const auto& version) { return version.has_value(); })) {
      NextStep(w);
    }
  }

  void NextStep(uint32_t w) {
    Worker& worker = workers_[w];
    for (const uint32_t vw : VirtualWorkersOf(w)) {
      for (uint32_t p = 0; p < kPartitions; ++p) {
        WireHeader push;
        push.kind = MessageKind::kPush;
        push.sender = WorkerPeer(w);
        push.block = p;
        push.segment_count = 2;
        push.virtual_worker = vw;
        push.virtual_worker_count = 1;
        push.clock = worker.clock;
        push.version = *worker.versions[p];
        push.token_count = 1;
        pushes_[{vw, worker.clock, p}] = {push};
        to_lane_.push_back(push);
      }
    }
    if (++worker.clock < End(w)) Begin(w);
  }

  void OnUpdate(const OrderRecord& record) {
    EXPECT_EQ(record.clock, next_[record.segment][record.virtual_worker]++)
        << "applied twice or out of order";
    EXPECT_EQ(record.version, ++versions_[record.segment]);
    EXPECT_EQ(record.flags, 0u);
    const auto push = pushes_.find({record.virtual_worker, record.clock, record.segment / 2});
    ASSERT_NE(push, pushes_.end());
    EXPECT_EQ(record.weights_version, push->second.header.version);
  }

  bool Done() const {
    return std::all_of(
               workers_.begin(), workers_.end(),
               [&](const auto& worker) { return worker.second.clock >= End(worker.first); }) &&
           std::all_of(pushes_.begin(), pushes_.end(),
                       [](const auto& push) { return push.second.end.has_value(); });
  }

  // Every committed push is in the weights exactly once, and no other is.
  void ExpectWeights() {
    for (uint32_t id = 0; id < table_.size(); ++id) {
      std::map<uint64_t, std::pair<float, uint32_t>> sums;  // by clock: sum and pushes
      for (const auto& [key, push] : pushes_) {
        const auto& [vw, clock, partition] = key;
        if (partition != id / 2 || *push.end != MessageKind::kCommitted) continue;
        sums[clock].first += Value(vw, clock);
        ++sums[clock].second;
      }
      float expected = 0;
      for (const auto& [clock, sum] : sums) {
        const float scale = mode_.update_per_push
                                ? 1.0f
                                : static_cast<float>(1.0 / static_cast<double>(sum.second));
        expected -= sum.first * scale;
      }
      for (const float w : shard_.weights(id)) ASSERT_EQ(w, expected) << "segment " << id;
    }
  }

  void ExpectClocks() {
    uint64_t updates = 0;
    for (uint32_t id = 0; id < table_.size(); ++id) {
      const uint64_t version = shard_.version(id);
      updates += version;
      if (mode_.update_per_push) {
        EXPECT_EQ(version, std::accumulate(std::begin(kEnds), std::end(kEnds), uint64_t{0}));
      } else {
        EXPECT_EQ(version, kClocks);
      }
    }
    EXPECT_EQ(shard_.counters().updates, updates);
    uint64_t counted = 0;
    for (const uint64_t count : shard_.counters().staleness) counted += count;
    EXPECT_EQ(counted, updates);
    EXPECT_EQ(shard_.finished(), mode_.update_per_push);
    EXPECT_EQ(shard_.Clocks(), mode_.update_per_push
                                   ? std::vector<uint64_t>(std::begin(kEnds), std::end(kEnds))
                                   : std::vector<uint64_t>(kVirtualWorkers, kClocks));
  }

  bool ends_said_ = false;
  const SyncMode mode_;
  const uint64_t bound_;
  std::mt19937 random_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<WireHeader> to_lane_;
  std::map<uint32_t, Worker> workers_;
  std::map<std::tuple<uint32_t, uint64_t, uint32_t>, Push> pushes_;  // vw, clock, partition
  std::map<uint32_t, std::map<uint32_t, uint64_t>> next_;  // next clocks by recorded updates
  std::map<uint32_t, uint64_t> versions_;
  const SegmentTable table_;
  Shard shard_;
};

TEST(ShardConformance, EveryPolicyAppliesWhatItCommitsOnceAndServesNothingTooSoon) {
  for (const SyncMode& mode : kSyncModes) {
    uint64_t deferred = 0, dropped = 0, repeats = 0, stale = 0;
    for (uint32_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE(testing::Message() << mode.name << ", seed " << seed);
      Cluster cluster(mode.policy, seed);
      cluster.Run();
      if (testing::Test::HasFailure()) return;
      deferred += cluster.counters().deferred;
      dropped += cluster.counters().dropped_pushes;
      repeats += cluster.counters().repeats;
      stale += cluster.counters().updates - cluster.counters().staleness[0];
    }
    EXPECT_GT(repeats, 0u) << mode.name;
    EXPECT_EQ(dropped > 0, mode.skips_steps) << mode.name;
    EXPECT_EQ(stale > 0, mode.update_per_push) << mode.name;
    EXPECT_TRUE(deferred > 0 || mode.update_per_push) << mode.name;
  }
}

}  // namespace
}  // namespace tug
