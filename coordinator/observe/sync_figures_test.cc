// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/sync_figures.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

StatusReply TwoServers() {
  StatusReply status;
  NodeCounters& first = *status.add_nodes()->mutable_counters();
  first.set_updates(4000);
  first.set_dropped_pushes(3);
  for (const uint64_t count : {3000, 500, 500}) first.add_staleness(count);
  NodeCounters& second = *status.add_nodes()->mutable_counters();
  second.set_updates(2000);
  for (const uint64_t count : {1000, 500, 0, 500, 0}) second.add_staleness(count);
  return status;
}

TEST(SyncFigures, AddUpWhatServersCounted) {
  const SyncFigures figures = SyncFiguresOf(TwoServers());
  EXPECT_EQ(figures.updates, 6000u);
  EXPECT_EQ(figures.dropped_pushes, 3u);
  EXPECT_EQ(figures.staleness, (std::vector<uint64_t>{4000, 1000, 500, 500, 0}));
  EXPECT_DOUBLE_EQ(figures.MeanStaleness(), (1000.0 + 2 * 500 + 3 * 500) / 6000);
  EXPECT_EQ(figures.MostStaleness(), 3u);
  EXPECT_EQ(SyncFigures().MostStaleness(), 0u);
}

TEST(SyncFigures, SayWhereStalenessIsNotCountedExactly) {
  SyncFigures figures;
  SyncConfig sync;
  sync.set_policy(SyncConfig::ASP);
  figures.updates = 2;
  figures.staleness.resize(255, 0);
  figures.staleness[0] = figures.staleness[254] = 1;
  EXPECT_EQ(SyncText(sync, figures),
            "sync: asp: 2 segment updates, staleness: mean 127.00, maximum 254");
  figures.staleness.back() = 0;
  figures.staleness.push_back(1);
  EXPECT_EQ(SyncText(sync, figures),
            "sync: asp: 2 segment updates, staleness: mean at least 127.50, maximum 255 or more");
}

TEST(SyncFigures, AreToldByPolicy) {
  const SyncFigures figures = SyncFiguresOf(TwoServers());
  SyncConfig sync;
  EXPECT_EQ(SyncText(sync, figures), "");
  sync.set_policy(SyncConfig::SSP);
  sync.set_staleness(4);
  EXPECT_EQ(SyncText(sync, figures),
            "sync: ssp(4): 6,000 segment updates, staleness: mean 0.58, maximum 3");
  sync.set_policy(SyncConfig::BACKUP);
  sync.set_backups(1);
  EXPECT_EQ(SyncText(sync, figures),
            "sync: backup(1): 6,000 segment updates, 3 late pushes dropped");
}

}  // namespace
}  // namespace tug
