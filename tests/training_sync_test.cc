// SPDX-License-Identifier: Apache-2.0
// Steps of a worker under every sync policy, with a real lane: pushes, reports, and final weights.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "blocks/runs.h"
#include "config/sync_mode.h"
#include "server/shard/shard.h"
#include "transport/answering_transport.h"
#include "worker/training_loop.h"
#include "worker/training_rig.h"

namespace tug {
namespace {

constexpr uint32_t kVirtualWorkers = 3;
constexpr uint64_t kSteps = 5;
constexpr uint64_t kSegment = 256;
constexpr uint32_t kBackups = 1;
constexpr PeerId kWorker = WorkerPeer(1);
constexpr PeerId kOtherWorker = WorkerPeer(2);

// Gradient of a block and virtual worker, as received by the lane.
struct Pushed {
  uint64_t tokens = 0;
  double sum_of_squares = 0;
  bool all_nan = true;
  bool rows = false;  // some partition was sent as rows
};
using PushOf = std::tuple<uint64_t, uint32_t, uint32_t>;  // clock, virtual worker, block

struct Outcome {
  std::vector<std::vector<float>> weights;  // by segment
  std::set<uint64_t> versions;              // of all segments, at the end
  ShardCounters lane;
  ExchangeCounters exchange;
  std::map<PushOf, Pushed> pushes;
  std::vector<StepReport> steps;
  std::vector<EvalReport> evals;
};

// A lane inside the transport of the only worker, without shared memory.
class LaneTransport final : public AnsweringTransport {
 public:
  // Called with each message of the worker before the lane gets it.
  using Hook = std::function<void(LaneTransport&, const WireHeader&)>;

  LaneTransport(const JobConfig& config, const SegmentTable& table, Hook hook, Outcome& outcome)
      : table_(table),
        hook_(std::move(hook)),
        outcome_(outcome),
        shard_(OptionsOf(config, table), table,
               {.send =
                    [this](Outgoing message) {
                      if (message.to != kWorker) return;
                      message.header.sender = LanePeer(0);
                      Answer({message.header, std::move(message.payload)});
                    },
                .snapshot = [](const SegmentSnapshot&) {},
                .notice = [](const ShardNotice&) {}}) {
    for (const uint32_t id : shard_.segments()) {
      const std::span<float> weights = shard_.weights(id);
      for (size_t e = 0; e < weights.size(); ++e) {
        weights[e] = 0.02f * static_cast<float>((e * 2654435761u + id) % 101) - 1.0f;
      }
    }
    const std::vector<uint64_t> clocks(kVirtualWorkers, kSteps);
    shard_.SetFinalVersion(kSteps);
    shard_.SetFinalClocks(clocks, kSteps, now_);
  }
  ~LaneTransport() override {
    for (uint32_t id = 0; id < table_.size(); ++id) {
      const std::span<float> weights = shard_.weights(id);
      outcome_.weights.emplace_back(weights.begin(), weights.end());
      outcome_.versions.insert(shard_.version(id));
    }
    outcome_.lane = shard_.counters();
  }

  // Number of segments by block.
  std::map<uint32_t, uint32_t> Blocks() const {
    std::map<uint32_t, uint32_t> blocks;
    for (uint32_t id = 0; id < table_.size(); ++id) ++blocks[table_.segment(id).block];
    return blocks;
  }
  std::span<float> weights(uint32_t segment) { return shard_.weights(segment); }
  // Pushes zeros from another worker, for the range and the clock of `like`.
  void PushOfOther(WireHeader like, uint32_t virtual_worker) {
    like.kind = MessageKind::kPush;
    like.codec = Codec::kNone;
    like.sender = kOtherWorker;
    like.virtual_worker = virtual_worker;
    like.virtual_worker_count = 1;
    like.token_count = 1;
    const uint32_t first = table_.id(like.block, like.first_segment);
    const uint64_t elements =
        table_.segment(first + like.segment_count - 1).end - table_.segment(first).begin;
    auto zeros = std::make_shared<AlignedBuffer>(elements * sizeof(float));
    shard_.OnMessage({like, Lease(zeros, std::as_const(*zeros).floats())}, now_);
  }

  absl::Status Send(Outgoing message) override {
    message.header.sender = kWorker;
    message.header.payload_bytes = message.payload.size_bytes();
    if (message.header.kind == MessageKind::kPush) Look(message);
    if (hook_) hook_(*this, message.header);
    // The worker owns its gradient: the lane must not write it.
    shard_.OnMessage({message.header, std::move(message.payload), Home::kSender}, now_);
    return absl::OkStatus();
  }

 private:
  static ShardOptions OptionsOf(const JobConfig& config, const SegmentTable& table) {
    ShardOptions options;
    options.job = options.timeline = options.view = 1;
    options.virtual_workers = kVirtualWorkers;
    options.optimizer = config.optimizer();
    options.sync = config.sync();
    options.lane_of_segment.assign(table.size(), 0);
    options.block_names.assign(table.num_blocks(), "block");
    return options;
  }

  void Look(const Outgoing& push) {
    const WireHeader& header = push.header;
    Pushed& pushed = outcome_.pushes[{header.clock, header.virtual_worker, header.block}];
    pushed.tokens = header.token_count;
    std::vector<float> all;
    std::span<const float> elements;
    if (header.codec == Codec::kRuns) {
      pushed.rows = true;
      const uint32_t first = table_.id(header.block, header.first_segment);
      all.resize(table_.segment(first + header.segment_count - 1).end -
                 table_.segment(first).begin);
      const std::optional<EncodedRuns> runs = DecodeRuns(push.payload.bytes(), all.size(), true);
      ASSERT_TRUE(runs.has_value());
      Scatter(*runs, all);
      elements = all;
    } else {
      elements = push.payload.floats();
    }
    for (const float element : elements) {
      pushed.sum_of_squares += double{element} * element;
      pushed.all_nan = pushed.all_nan && std::isnan(element);
    }
  }

  const SegmentTable& table_;
  const Hook hook_;
  const absl::Time now_ = absl::UnixEpoch();  // nothing is lost, so nothing is resent
  Outcome& outcome_;
  Shard shard_;
};

class TrainingSyncTest : public testing::Test {
 protected:
  TrainingSyncTest() : config_(SmallJob(kVirtualWorkers, kSegment)) {
    config_.mutable_sync()->set_backups(kBackups);
    config_.mutable_comm()->set_sparse_embeddings(false);
  }

  void Choose(const SyncMode& mode, OptimizerConfig::Clip clip, uint32_t local_steps = 1) {
    mode_ = mode;
    config_.mutable_sync()->set_policy(mode.policy);
    config_.mutable_sync()->set_local_steps(local_steps);
    config_.mutable_optimizer()->set_clip(clip);
  }

  // Trains with a worker that runs the virtual workers `carried`.
  Outcome Train(LaneTransport::Hook hook = nullptr,
                const std::function<void(LaneTransport&)>& before = nullptr,
                std::vector<uint32_t> carried = {0, 1, 2}) {
    Outcome outcome;
    TrainingRig rig(config_);
    const SegmentTable& table = rig.table();
    ControlBoard board;
    ControlBoard::Orders orders{.go = true, .pause = false, .final_version = kSteps};
    orders.final_clocks.assign(kVirtualWorkers, kSteps);
    board.SetOrders(orders);
    auto lane = std::make_unique<LaneTransport>(config_, table, std::move(hook), outcome);
    if (before) before(*lane);
    {
      ExchangeClient exchange({.job = 1,
                               .timeline = 1,
                               .view = 1,
                               .lane_of_segment = std::vector<uint32_t>(table.size(), 0),
                               .comm = config_.comm(),
                               .mode = mode_},
                              table, std::move(lane));
      TrainingLoop loop({config_, carried, 0}, table, rig.model(), rig.sampler(), exchange, board);
      EXPECT_TRUE(loop.Run().ok());
      outcome.exchange = exchange.counters();
    }
    HeartbeatRequest beat;
    board.AddTo(beat);
    outcome.steps.assign(beat.steps().begin(), beat.steps().end());
    outcome.evals.assign(beat.evals().begin(), beat.evals().end());
    EXPECT_EQ(outcome.lane.malformed, 0u);
    return outcome;
  }

  static void ExpectSameBits(const Outcome& a, const Outcome& b) {
    ASSERT_EQ(a.weights.size(), b.weights.size());
    for (size_t id = 0; id < a.weights.size(); ++id) {
      EXPECT_EQ(0, std::memcmp(a.weights[id].data(), b.weights[id].data(),
                               a.weights[id].size() * sizeof(float)))
          << "segment " << id;
    }
    ASSERT_EQ(a.evals.size(), b.evals.size());
    for (size_t i = 0; i < a.evals.size(); ++i) {
      EXPECT_EQ(a.evals[i].loss_sum(), b.evals[i].loss_sum());
    }
  }

  JobConfig config_;
  SyncMode mode_ = kSyncModes[0];
};

constexpr OptimizerConfig::Clip kClips[] = {OptimizerConfig::OFF, OptimizerConfig::PER_BLOCK,
                                            OptimizerConfig::GLOBAL};

TEST_F(TrainingSyncTest, EveryPolicyTrainsToItsEndAndReportsEveryShareOnce) {
  for (const SyncMode& mode : kSyncModes) {
    for (const auto clip : kClips) {
      for (const uint32_t local_steps : {1u, 3u}) {
        if (local_steps > 1 && mode.update_per_push) continue;  // refused
        SCOPED_TRACE(absl::StrCat(mode.name, " ", OptimizerConfig::Clip_Name(clip), " ",
                                  local_steps, " local steps"));
        Choose(mode, clip, local_steps);
        config_.mutable_comm()->set_partition_bytes(kSegment * sizeof(float));
        const Outcome outcome = Train();
        // If each push is an update, a segment's version counts pushes.
        EXPECT_EQ(outcome.versions,
                  (std::set<uint64_t>{mode.update_per_push ? kSteps * kVirtualWorkers : kSteps}));
        std::set<std::pair<uint64_t, uint32_t>> steps, evals;
        for (const StepReport& step : outcome.steps) {
          steps.emplace(step.clock(), step.virtual_worker());
          EXPECT_FALSE(step.skipped());
          EXPECT_TRUE(std::isfinite(step.loss_sum()));
          EXPECT_EQ(step.targets(), local_steps * 2 * config_.model().context());
        }
        EXPECT_EQ(outcome.steps.size(), kSteps * kVirtualWorkers);
        EXPECT_EQ(steps.size(), kSteps * kVirtualWorkers);
        for (const EvalReport& eval : outcome.evals) {
          evals.emplace(eval.version(), eval.virtual_worker());
          EXPECT_EQ(eval.final(), eval.version() == kSteps);
        }
        EXPECT_EQ(evals.size(), 3 * kVirtualWorkers) << "at 2, 4 and the end";
        EXPECT_EQ(outcome.evals.size(), evals.size());
        // An update that does not wait for all drops the last push.
        EXPECT_EQ(outcome.exchange.dropped > 0, mode.skips_steps);
        config_.mutable_comm()->set_partition_bytes(16 * kSegment * sizeof(float));
        ExpectSameBits(outcome, Train());
      }
    }
  }
}

// The norm of a push over its tokens is clip_norm if pushes are updates; else the worker does not
// clip.
TEST_F(TrainingSyncTest, ClipsWhatItPushesWherePushesAreUpdatesAndNowhereElse) {
  constexpr double kNorm = 1e-2;
  config_.mutable_optimizer()->set_clip_norm(kNorm);
  for (const SyncMode& mode : kSyncModes) {
    for (const auto clip : kClips) {
      SCOPED_TRACE(absl::StrCat(mode.name, " ", OptimizerConfig::Clip_Name(clip)));
      Choose(mode, clip);
      std::map<PushOf, double> norms;  // with GLOBAL, the sum over all blocks, under block 0
      for (const auto& [of, pushed] : Train().pushes) {
        const auto [clock, virtual_worker, block] = of;
        const double tokens = static_cast<double>(pushed.tokens);
        norms[{clock, virtual_worker, clip == OptimizerConfig::GLOBAL ? 0 : block}] +=
            pushed.sum_of_squares / (tokens * tokens);
      }
      EXPECT_GE(norms.size(), kSteps * kVirtualWorkers);
      for (const auto& [of, square] : norms) {
        if (mode.update_per_push && clip != OptimizerConfig::OFF) {
          EXPECT_NEAR(std::sqrt(square), kNorm, kNorm * 1e-3);
        } else {
          EXPECT_GT(std::sqrt(square), 2 * kNorm);
        }
      }
    }
  }
}

// If only some rows of block 0 were pushed, the others would get a gradient of zero, and momentum
// and decay would change them.
TEST_F(TrainingSyncTest, AGradientThatIsNotFiniteIsPushedWholeAndMovesNothing) {
  config_.mutable_comm()->set_sparse_embeddings(true);
  for (const auto policy : {SyncConfig::SSP, SyncConfig::ASP}) {
    for (const auto clip : {OptimizerConfig::PER_BLOCK, OptimizerConfig::GLOBAL}) {
      SCOPED_TRACE(absl::StrCat(SyncModeOf(policy).name, " ", OptimizerConfig::Clip_Name(clip)));
      Choose(SyncModeOf(policy), clip);
      std::vector<std::vector<float>> start;
      const auto blow_up = [&](LaneTransport& lane) {
        uint32_t segments = 0;
        for (const auto& [block, count] : lane.Blocks()) segments += count;
        lane.weights(segments - 1)[0] = std::numeric_limits<float>::infinity();  // in the head
        for (uint32_t id = 0; id < segments; ++id) {
          start.emplace_back(lane.weights(id).begin(), lane.weights(id).end());
        }
      };
      const Outcome outcome = Train(nullptr, blow_up);
      EXPECT_EQ(outcome.pushes.size() % (kSteps * kVirtualWorkers), 0u);
      for (const auto& [of, pushed] : outcome.pushes) {
        EXPECT_TRUE(pushed.all_nan);
        EXPECT_FALSE(pushed.rows);
      }
      EXPECT_EQ(outcome.versions, std::set<uint64_t>{kSteps * kVirtualWorkers});
      EXPECT_EQ(outcome.weights, start);
    }
  }
}

// Without staleness scaling, which would differ: rows that a step does not touch are not stale.
TEST_F(TrainingSyncTest, RowsOfTheEmbeddingGiveTheBitsOfTheWholeBlock) {
  config_.mutable_sync()->set_staleness_scaling(SyncConfig::NONE);
  for (const SyncMode& mode : kSyncModes) {
    for (const auto clip : kClips) {
      SCOPED_TRACE(absl::StrCat(mode.name, " ", OptimizerConfig::Clip_Name(clip)));
      Choose(mode, clip);
      config_.mutable_comm()->set_sparse_embeddings(true);
      const Outcome rows = Train();
      EXPECT_TRUE(rows.pushes.at({0, 0, 0}).rows);
      config_.mutable_comm()->set_sparse_embeddings(false);
      const Outcome whole = Train();
      EXPECT_FALSE(whole.pushes.at({0, 0, 0}).rows);
      ExpectSameBits(rows, whole);
    }
  }
}

// The other workers close two updates without this worker before it begins, and two more during its
// next step.
TEST_F(TrainingSyncTest, ReportsTheStepsThatWereClosedWithoutItAsSkipped) {
  Choose(SyncModeOf(SyncConfig::BACKUP), OptimizerConfig::GLOBAL);
  const auto close = [](LaneTransport& lane, WireHeader like) {
    lane.PushOfOther(like, 1);
    lane.PushOfOther(like, 2);
  };
  const auto before = [&](LaneTransport& lane) {
    for (uint64_t clock = 0; clock < 2; ++clock) {
      for (const auto& [block, count] : lane.Blocks()) {
        WireHeader whole{.job = 1,
                         .timeline = 1,
                         .view = 1,
                         .block = block,
                         .segment_count = count,
                         .clock = clock,
                         .version = clock};
        close(lane, whole);
      }
    }
  };
  const auto hook = [&](LaneTransport& lane, const WireHeader& header) {
    if (header.kind != MessageKind::kPush) return;
    if (header.clock == 2) return lane.PushOfOther(header, 1);  // which completes the sum
    close(lane, header);
  };
  const Outcome outcome = Train(hook, before, {0});
  EXPECT_EQ(outcome.versions, std::set<uint64_t>{kSteps});
  ASSERT_EQ(outcome.steps.size(), kSteps);
  for (const StepReport& step : outcome.steps) {
    EXPECT_EQ(step.skipped(), step.clock() < 2) << step.clock();
    EXPECT_EQ(step.targets() == 0, step.skipped());
  }
  EXPECT_GT(outcome.exchange.dropped, 0u);
}

}  // namespace
}  // namespace tug
