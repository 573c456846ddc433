// SPDX-License-Identifier: Apache-2.0
#include "launch/local_budget.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

CpuBudget Host(int cores) {
  CpuBudget host;
  host.usable = cores;
  for (int i = 0; i < cores; ++i) host.cores.push_back({i, 0});
  return host;
}

ClusterConfig Cluster(uint32_t workers, uint32_t compute_threads, bool pin_threads = true) {
  ClusterConfig cluster;
  cluster.set_servers(1);
  cluster.set_lanes_per_server(1);
  cluster.set_workers(workers);
  cluster.set_compute_threads(compute_threads);
  cluster.set_pin_threads(pin_threads);
  return cluster;
}

using Texts = std::vector<std::string>;

TEST(LocalBudget, OnFewCoresNothingIsPinned) {
  LocalJob job;
  job.overrides = {"seed=2"};
  FitToMachine(Host(2), Cluster(2, 0), job);
  EXPECT_EQ(job.overrides,
            (Texts{"seed=2", "cluster.compute_threads=1", "cluster.pin_threads=false"}));
  EXPECT_TRUE(job.server_cores.front().empty());
  EXPECT_TRUE(job.worker_cores.front().empty());
}

TEST(LocalBudget, OnEnoughCoresEachProcessGetsItsOwn) {
  LocalJob job;
  FitToMachine(Host(8), Cluster(1, 0), job);
  EXPECT_EQ(job.overrides, Texts{"cluster.compute_threads=6"});
  EXPECT_EQ(job.worker_cores, (std::vector<CoreList>{{0, 1, 2, 3, 4, 5, 6}}));
  EXPECT_EQ(job.server_cores, (std::vector<CoreList>{{7}}));
}

TEST(LocalBudget, KeepsWhatIsSet) {
  LocalJob job;
  FitToMachine(Host(8), Cluster(2, 2), job);  // 7 busy threads
  EXPECT_TRUE(job.overrides.empty());
  EXPECT_EQ(job.worker_cores.size(), 2u);
  EXPECT_EQ(job.worker_cores[1].size(), 3u);

  LocalJob free;
  FitToMachine(Host(8), Cluster(2, 2, /*pin_threads=*/false), free);
  EXPECT_TRUE(free.overrides.empty());
  EXPECT_TRUE(free.worker_cores.empty());
}

TEST(LocalBudget, SaysThePlan) {
  EXPECT_EQ(LocalPlanText(Host(8), Cluster(1, 0)),
            "8 cores: 1 lane per server, 6 compute threads per worker, pinned (8 busy threads)");
}

}  // namespace
}  // namespace tug
