// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/residual_parts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "proto/control.pb.h"

namespace tug {
namespace {

constexpr uint32_t kNode = 7;

class ResidualPartsTest : public testing::Test {
 protected:
  void Add(uint32_t virtual_worker, std::vector<uint64_t> versions) {
    const ResidualOrder order{.virtual_worker = virtual_worker, .versions = std::move(versions)};
    parts_->AddOlder(order);
    parts_->Add(NewestPart(order, absl::Seconds(2)));
  }
  // Virtual worker and version of each reported part.
  std::vector<std::pair<uint32_t, uint64_t>> Reported() const {
    HeartbeatRequest beat;
    parts_->AddTo(beat);
    std::vector<std::pair<uint32_t, uint64_t>> reported;
    for (const CheckpointPart& part : beat.parts()) {
      reported.emplace_back(part.virtual_worker(), part.version());
    }
    return reported;
  }
  // Enters a view in which `node` runs the virtual worker from `clock` on.
  void MoveTo(uint32_t node, uint32_t virtual_worker, uint64_t clock) {
    View view;
    WorkerAssignment& worker = *view.add_workers();
    worker.set_node_id(node);
    worker.add_virtual_workers(virtual_worker);
    worker.add_start_clocks(clock);
    parts_->OnView(view, kNode);
  }

  std::optional<ResidualParts> parts_{std::in_place, SyncModeOf(SyncConfig::BSP)};
};

TEST_F(ResidualPartsTest, OnlyTheNewestVersionOfAnOrderHasResiduals) {
  Add(3, {4, 6, 8});
  EXPECT_EQ(Reported(), (std::vector<std::pair<uint32_t, uint64_t>>{{3, 4}, {3, 6}, {3, 8}}));
  HeartbeatRequest beat;
  parts_->AddTo(beat);
  EXPECT_EQ(beat.parts(0).pause_seconds(), 0);
  EXPECT_EQ(beat.parts(2).pause_seconds(), 2);
}

TEST_F(ResidualPartsTest, KeepsTheNewestPartsOfEachVirtualWorkerOnceAllWereHeard) {
  for (uint64_t version = 1; version <= 20; ++version) Add(2, {version});
  Add(3, {1});
  HeartbeatRequest sent;
  parts_->AddTo(sent);
  EXPECT_EQ(sent.parts_size(), 21);
  parts_->OnHeard(sent);
  const auto reported = Reported();
  ASSERT_EQ(reported.size(), 9u);
  EXPECT_EQ(reported[0], (std::pair<uint32_t, uint64_t>{2, 13}));
  EXPECT_EQ(reported[7], (std::pair<uint32_t, uint64_t>{2, 20}));
  EXPECT_EQ(reported[8].first, 3u);
}

TEST_F(ResidualPartsTest, PartsOfReassignedVirtualWorkersAreVoidUntilTheyComeBack) {
  Add(3, {10, 20});
  Add(4, {20});
  MoveTo(kNode + 1, 3, 12);
  MoveTo(kNode + 1, 3, 25);  // in a later view
  Add(3, {22});              // was being written
  EXPECT_EQ(Reported(), (std::vector<std::pair<uint32_t, uint64_t>>{{3, 10}, {4, 20}}));
  MoveTo(kNode, 3, 25);
  Add(3, {30});
  EXPECT_EQ(Reported(), (std::vector<std::pair<uint32_t, uint64_t>>{{3, 10}, {3, 30}, {4, 20}}));
}

TEST_F(ResidualPartsTest, NoPartBecomesVoidWherePushesAreUpdates) {
  parts_.emplace(SyncModeOf(SyncConfig::ASP));
  Add(3, {10, 20});
  MoveTo(kNode + 1, 3, 12);
  EXPECT_EQ(Reported().size(), 2u);
}

}  // namespace
}  // namespace tug
