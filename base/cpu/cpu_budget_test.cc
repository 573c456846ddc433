// SPDX-License-Identifier: Apache-2.0
#include "base/cpu/cpu_budget.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "gtest/gtest.h"

namespace tug {
namespace {

// Cores numbered round-robin over the nodes, as on many machines.
CpuBudget Host(int cores, int nodes = 1) {
  CpuBudget budget;
  budget.usable = cores;
  for (int node = 0; node < nodes; ++node) {
    for (int core = node; core < cores; core += nodes) budget.cores.push_back({core, node});
  }
  return budget;
}

CpuBudget Part(const CpuBudget& host, const CoreList& cores) {
  CpuBudget part;
  part.usable = static_cast<int>(cores.size());
  for (const Core& core : host.cores) {
    if (std::count(cores.begin(), cores.end(), core.number) > 0) part.cores.push_back(core);
  }
  return part;
}

HostLoad DefaultLoad(int cores, int servers, int workers) {
  HostLoad load;
  load.servers = servers;
  load.lanes_per_server = DefaultLanesPerServer(cores, servers);
  load.workers = workers;
  load.compute_threads = DefaultComputeThreads(cores, load);
  return load;
}

struct Row {
  int cores, servers, workers;
  int lanes_per_server, compute_threads, busy_threads;
  bool pinned;
};
std::ostream& operator<<(std::ostream& out, const Row& row) {
  return out << row.cores << " cores, " << row.servers << " servers, " << row.workers << " workers";
}

constexpr Row kLocalJobs[] = {
    // cores, servers, workers; lanes, compute threads, busy, pinned
    {1, 1, 1, 1, 1, 3, false},      {2, 1, 1, 1, 2, 4, false},     {2, 1, 2, 1, 1, 5, false},
    {2, 2, 2, 1, 1, 6, false},      {4, 1, 1, 1, 3, 5, false},     {4, 1, 2, 1, 2, 7, false},
    {8, 1, 1, 1, 6, 8, true},       {8, 1, 2, 1, 3, 9, false},     {8, 2, 2, 1, 3, 10, false},
    {8, 1, 4, 1, 2, 13, false},     {16, 1, 1, 2, 13, 16, true},   {16, 1, 2, 2, 6, 16, true},
    {16, 2, 2, 1, 6, 16, true},     {16, 1, 4, 2, 3, 18, false},   {64, 1, 1, 8, 55, 64, true},
    {64, 1, 4, 8, 13, 64, true},    {64, 2, 2, 4, 27, 64, true},   {64, 4, 8, 2, 6, 64, true},
    {128, 1, 1, 8, 119, 128, true}, {128, 2, 8, 8, 13, 128, true}, {128, 4, 4, 4, 27, 128, true},
    {128, 16, 16, 1, 6, 128, true},
};

TEST(CpuBudget, DefaultsOfALocalJobFitTheMachine) {
  for (const Row& row : kLocalJobs) {
    const HostLoad load = DefaultLoad(row.cores, row.servers, row.workers);
    EXPECT_EQ(load.lanes_per_server, row.lanes_per_server) << row;
    EXPECT_EQ(load.compute_threads, row.compute_threads) << row;
    EXPECT_EQ(load.busy_threads(), row.busy_threads) << row;
    const HostPlan plan = DivideHost(Host(row.cores), load);
    EXPECT_EQ(plan.may_pin, row.pinned) << row;
    EXPECT_EQ(!plan.workers[0].empty(), row.pinned) << row;
  }
}

TEST(CpuBudget, DefaultsHoldForOneProcessAloneOnAHost) {
  const std::map<int, int> compute_threads = {{1, 1},   {2, 2},   {4, 3},    {8, 7},
                                              {16, 15}, {64, 63}, {128, 127}};
  for (const auto& [cores, threads] : compute_threads) {
    EXPECT_EQ(DefaultComputeThreads(cores, {.workers = 1}), threads) << cores << " cores";
  }
  const std::map<int, int> lanes = {{1, 1}, {2, 1}, {8, 1}, {16, 2}, {64, 8}, {128, 8}};
  for (const auto& [cores, count] : lanes) {
    EXPECT_EQ(DefaultLanesPerServer(cores, 1), count) << cores << " cores";
  }
}

TEST(CpuBudget, LanesBesideGpusTakeWhatWorkersLeave) {
  EXPECT_EQ(DefaultLanesBesideGpus(2, 1, 1), 1);
  EXPECT_EQ(DefaultLanesBesideGpus(16, 2, 1), 6);
  EXPECT_EQ(DefaultLanesBesideGpus(16, 1, 1), 8);
  EXPECT_EQ(DefaultLanesBesideGpus(64, 8, 8), 5);
  EXPECT_EQ(DefaultLanesBesideGpus(16, 2, 8), 1);
}

// Compute threads never exceed the cores, nor do lanes where that is cheap to avoid.
TEST(CpuBudget, DefaultsNeverComputeOnMoreThreadsThanCores) {
  for (int cores = 1; cores <= 256; ++cores) {
    for (int servers = 1; servers <= 16; ++servers) {
      for (int workers = 1; workers <= 16; ++workers) {
        const HostLoad load = DefaultLoad(cores, servers, workers);
        const int computing = load.compute_threads * workers;
        ASSERT_LE(computing, std::max(cores, workers));
        ASSERT_LE(load.lanes(), std::max(cores / 8, servers));
        const int beside_lanes = (cores - load.lanes()) / workers * workers;
        if (4 * beside_lanes >= 3 * cores) {
          ASSERT_LE(computing + load.lanes(), cores)
              << cores << " cores, " << servers << " servers, " << workers << " workers";
        }
        // At most a quarter of the cores, or the remainder of the division, is left to others.
        ASSERT_GE(computing, std::min(3 * cores / 4, cores / workers * workers));
      }
    }
  }
}

// No two processes and no two busy threads share a core.
TEST(CpuBudget, EveryBusyThreadOfADividedHostHasACoreOfItsOwn) {
  for (const int nodes : {1, 2, 4}) {
    for (const Row& row : kLocalJobs) {
      if (!row.pinned) continue;
      const CpuBudget host = Host(row.cores, nodes);
      const HostLoad load = DefaultLoad(row.cores, row.servers, row.workers);
      const HostPlan plan = DivideHost(host, load);
      std::multiset<int> used;
      for (const CoreList& cores : plan.workers) {
        const WorkerCores worker = PlanWorker(Part(host, cores), load.compute_threads);
        for (const CoreList& thread : worker.compute) {
          ASSERT_EQ(thread.size(), 1u) << row;
          used.insert(thread[0]);
        }
        ASSERT_EQ(worker.exchange.size(), 1u);
        used.insert(worker.exchange[0]);
        EXPECT_EQ(worker.io.size(), 1u);
      }
      for (const CoreList& cores : plan.servers) {
        for (const LaneCores& lane : PlanServer(Part(host, cores), load.lanes_per_server)) {
          ASSERT_EQ(lane.lane.size(), 1u) << row;
          used.insert(lane.lane[0]);
          EXPECT_EQ(lane.io.size(), 1u);
        }
      }
      EXPECT_EQ(static_cast<int>(used.size()), load.busy_threads()) << row;
      EXPECT_EQ(std::set<int>(used.begin(), used.end()).size(), used.size()) << row;
    }
  }
}

TEST(CpuBudget, AWorkerStaysOnOneNodeWhereOneHasTheCores) {
  const CpuBudget host = Host(64, 2);  // even cores on node 0
  const HostPlan plan = DivideHost(host, DefaultLoad(64, 1, 2));
  ASSERT_EQ(plan.workers.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(plan.workers[i].size(), 28u);
    for (const int core : plan.workers[i]) EXPECT_EQ(core % 2, i);
  }
  EXPECT_EQ(plan.servers[0].size(), 8u);
}

TEST(CpuBudget, SharesFollowBusyThreads) {
  const HostPlan plan = DivideHost(
      Host(16), {.servers = 1, .lanes_per_server = 1, .workers = 1, .compute_threads = 9});
  EXPECT_EQ(plan.workers[0].size(), 14u);  // 10 of 11 busy threads
  EXPECT_EQ(plan.servers[0].size(), 1u);
}

TEST(CpuBudget, LeavesAJobThatUsesAtMostHalfTheCoresToTheKernel) {
  const HostLoad load = {.servers = 1, .lanes_per_server = 2, .workers = 2, .compute_threads = 2};
  const HostPlan plan = DivideHost(Host(16), load);  // 8 busy threads
  EXPECT_TRUE(plan.may_pin);
  EXPECT_EQ(plan.workers, std::vector<CoreList>(2));
  EXPECT_EQ(plan.servers, std::vector<CoreList>(1));
  EXPECT_TRUE(PlanWorker(Host(16), 2).compute[1].empty());
  EXPECT_TRUE(PlanServer(Host(16), 2)[1].lane.empty());
}

TEST(CpuBudget, SpreadsFewLanesOverTheNodes) {
  const std::vector<LaneCores> plan = PlanServer(Host(8, 2), 3);
  EXPECT_EQ(plan[0].lane, (CoreList{0, 2, 4, 6}));
  EXPECT_EQ(plan[1].lane, (CoreList{1, 3, 5, 7}));
  EXPECT_EQ(plan[2].io, plan[0].lane);
}

TEST(CpuBudget, GivesSpareCoresToTransports) {
  const std::vector<LaneCores> lanes = PlanServer(Host(5), 3);
  EXPECT_EQ(lanes[2].lane, CoreList{2});
  EXPECT_EQ(lanes[0].io, CoreList{3});
  EXPECT_EQ(lanes[1].io, CoreList{4});
  EXPECT_EQ(lanes[2].io, CoreList{2});
  EXPECT_EQ(PlanWorker(Host(4), 3).io, CoreList{3});
  EXPECT_EQ(PlanWorker(Host(5), 3).exchange, CoreList{3});
  EXPECT_EQ(PlanWorker(Host(5), 3).io, CoreList{4});
}

TEST(CpuBudget, PinsNothingUnderAQuotaOrWithoutCores) {
  CpuBudget quota = Host(8);
  quota.usable = 7;
  CpuBudget unknown;
  unknown.usable = 8;
  const HostLoad load = {.servers = 1, .workers = 1, .compute_threads = 4};
  for (const CpuBudget& budget : {quota, unknown}) {
    EXPECT_FALSE(DivideHost(budget, load).may_pin);
    EXPECT_TRUE(PlanWorker(budget, 5).compute[0].empty());
    EXPECT_TRUE(PlanServer(budget, 5)[0].lane.empty());
  }
}

TEST(CpuBudget, SaysThePlanInOneLine) {
  EXPECT_EQ(PlanText(Host(2), DefaultLoad(2, 1, 2), true),
            "2 cores: 1 lane per server, 1 compute thread per worker, not pinned (5 busy threads)");
  EXPECT_EQ(
      PlanText(Host(64), DefaultLoad(64, 1, 4), true),
      "64 cores: 8 lanes per server, 13 compute threads per worker, pinned (64 busy threads)");
  EXPECT_EQ(PlanText(Host(64), DefaultLoad(64, 1, 4), false),
            "64 cores: 8 lanes per server, 13 compute threads per worker, not pinned (64 busy "
            "threads)");
}

}  // namespace
}  // namespace tug
