// SPDX-License-Identifier: Apache-2.0
#include "server/restore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/files/test_folder.h"
#include "checkpoint/checkpoint.h"
#include "server/snapshot_writer.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kElements = 1024;
constexpr uint32_t kVirtualWorkers = 3;

// Two segments of one block, on one lane, SGD with momentum.
class RestoreTest : public testing::Test {
 protected:
  RestoreTest() {
    BlockSpec& block = *blocks_.add_blocks();
    block.set_name("only");
    block.add_tensors()->add_shape(2 * kElements);
    table_ = *SegmentTable::Create(blocks_, kElements);
    config_.mutable_comm()->set_segment_elements(kElements);
    config_.mutable_cluster()->set_virtual_workers(kVirtualWorkers);
    config_.mutable_sync()->set_policy(SyncConfig::ASP);
    config_.mutable_optimizer()->set_algorithm(OptimizerConfig::SGD);
    config_.mutable_optimizer()->set_schedule(OptimizerConfig::CONSTANT);
    config_.mutable_optimizer()->set_learning_rate(0.25);
    config_.mutable_optimizer()->mutable_sgd()->set_momentum(0.5);
  }

  std::unique_ptr<Shard> MakeShard(const JobConfig& config, uint64_t start_version = 0) {
    ShardOptions options;
    options.virtual_workers = config.cluster().virtual_workers();
    options.optimizer = config.optimizer();
    options.sync = config.sync();
    options.start_version = start_version;
    options.checkpoint_interval = 2;
    options.lane_of_segment = {0, 0};
    options.block_names = {"only"};
    return std::make_unique<Shard>(
        options, table_,
        ShardSinks{.send = [this](Outgoing m) { answer_ = m.header; },
                   .snapshot = [this](const SegmentSnapshot& s) { writer_->Add(s); },
                   .notice = [](const ShardNotice& n) { ADD_FAILURE() << n.text; }});
  }
  void Push(Shard& shard, uint32_t virtual_worker, uint64_t clock) {
    Message message;
    message.header.sender = WorkerPeer(0);
    message.header.segment_count = 2;
    message.header.virtual_worker = virtual_worker;
    message.header.virtual_worker_count = 1;
    message.header.clock = clock;
    message.header.token_count = 1;
    auto gradient = std::make_shared<std::vector<float>>(2 * kElements, 1.0f);
    message.payload = Lease(gradient, std::span<const float>(*gradient));
    shard.OnMessage(message, absl::UnixEpoch());
  }
  // Checkpoint of step 2 after six pushes, four of them by virtual worker 0.
  std::string Checkpoint(Shard& shard) {
    writer_.emplace(SnapshotWriter::Options{.run_dir = run_, .block_names = {"only"}}, table_);
    writer_->SetPlace({.segments = 2});
    for (uint64_t clock = 0; clock < 4; ++clock) Push(shard, 0, clock);
    for (const uint32_t vw : {1u, 2u}) Push(shard, vw, 0);
    TUG_CHECK_EQ(shard.version(1), 6u);
    while (writer_->parts().empty()) std::this_thread::yield();
    part_ = writer_->parts()[0];
    Manifest manifest;
    manifest.set_version(part_.version());
    *manifest.mutable_config() = config_;
    ManifestFile& file = *manifest.add_files();
    file.set_name(part_.file());
    file.set_size_bytes(part_.size_bytes());
    file.set_xxh3(part_.xxh3());
    return *CommitCheckpoint(run_, manifest, {.keep = 1});
  }

  const TestFolder folder_;
  const std::string& run_ = folder_.path();
  BlockTable blocks_;
  SegmentTable table_;
  JobConfig config_;
  std::optional<SnapshotWriter> writer_;
  CheckpointPart part_;
  WireHeader answer_;
};

TEST_F(RestoreTest, GivesBackVersionsClocksAndWhatTheOptimizerKeeps) {
  const auto shard = MakeShard(config_);
  const std::string folder = Checkpoint(*shard);
  EXPECT_EQ(part_.error(), "");
  EXPECT_EQ(part_.version(), 2u);
  EXPECT_THAT(part_.clocks(), ElementsAre(4, 1, 1));
  const auto restored = MakeShard(config_, 2);
  ASSERT_TRUE(RestoreSegments(folder, config_, blocks_, table_, *restored).ok());
  EXPECT_EQ(restored->version(1), 6u);
  EXPECT_EQ(restored->Clocks(), (std::vector<uint64_t>{4, 1, 1}));
  EXPECT_TRUE(std::equal(restored->m(1).begin(), restored->m(1).end(), shard->m(1).begin()));
  EXPECT_TRUE(restored->v(1).empty());
  Push(*restored, 0, 3);  // a repeat
  EXPECT_EQ(restored->version(1), 6u);
  for (Shard* const each : {shard.get(), restored.get()}) Push(*each, 0, 4);
  EXPECT_EQ(restored->version(1), 7u);
  EXPECT_TRUE(std::equal(restored->weights(1).begin(), restored->weights(1).end(),
                         shard->weights(1).begin()));
}

TEST_F(RestoreTest, NamesBothSizesWhereClocksAreOfOtherSegmentsOrVirtualWorkers) {
  const std::string folder = Checkpoint(*MakeShard(config_));
  JobConfig other = config_;
  other.mutable_comm()->set_segment_elements(2 * kElements);
  const absl::Status segments =
      RestoreSegments(folder, other, blocks_, table_, *MakeShard(config_, 2));
  EXPECT_TRUE(absl::IsFailedPrecondition(segments));
  EXPECT_THAT(std::string(segments.message()),
              HasSubstr("comm.segment_elements = 1024 but this job has 2048"));
  other = config_;
  other.mutable_cluster()->set_virtual_workers(4);
  EXPECT_THAT(
      std::string(RestoreSegments(folder, other, blocks_, table_, *MakeShard(other, 2)).message()),
      HasSubstr("cluster.virtual_workers = 3 but this job has 4"));
}

TEST_F(RestoreTest, RefusesACheckpointOfPushesThatWereUpdatesWhereTheyAreSummed) {
  const std::string folder = Checkpoint(*MakeShard(config_));
  JobConfig bsp = config_;
  bsp.mutable_sync()->set_policy(SyncConfig::BSP);
  bsp.mutable_optimizer()->set_clip(OptimizerConfig::OFF);
  const auto restored = MakeShard(bsp, 2);
  const absl::Status status = RestoreSegments(folder, bsp, blocks_, table_, *restored);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("has clocks of virtual workers, but sync.policy of this job is bsp"));
}

// The training had diverged: updates keep weights that are not finite.
TEST_F(RestoreTest, RefusesWeightsThatAreNotFinite) {
  blocks_.mutable_blocks(0)->mutable_tensors(0)->set_name("only.gain");
  const auto shard = MakeShard(config_);
  shard->weights(1)[5] = std::numeric_limits<float>::infinity();
  const std::string folder = Checkpoint(*shard);
  const absl::Status status =
      RestoreSegments(folder, config_, blocks_, table_, *MakeShard(config_, 2));
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(folder + ": element 1029 of only.gain is "),
                    HasSubstr("use an earlier checkpoint"),
                    HasSubstr("--resume " + run_ + "/checkpoints/step-...")));
}

TEST_F(RestoreTest, SaysThatAnotherOptimizersStateIsMissing) {
  const std::string folder = Checkpoint(*MakeShard(config_));
  JobConfig adamw = config_;
  adamw.mutable_optimizer()->set_algorithm(OptimizerConfig::ADAMW);
  const absl::Status status = RestoreSegments(folder, adamw, blocks_, table_, *MakeShard(adamw, 2));
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("another model or optimizer"));
}

}  // namespace
}  // namespace tug
