// SPDX-License-Identifier: Apache-2.0
#include "base/cpu/cpu_affinity.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/synchronization/barrier.h"
#include "base/cpu/thread_pool.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

std::vector<int> Mine() {
  std::vector<int> cores;
  for (const Core& core : ReadCpuBudget().cores) cores.push_back(core.number);
  return cores;
}

// Files of a fake machine instead of /proc and /sys.
class MachineTest : public ::testing::Test {
 protected:
  MachineTest() { fs::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  const std::string root_ = testing::TempDir() + "/machine";
  const int cores_ = static_cast<int>(Mine().size());
};

TEST(ParseCoreList, ReadsWhatTheKernelWrites) {
  EXPECT_EQ(ParseCoreList("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(ParseCoreList("5"), std::vector<int>{5});
  for (const char* broken : {"", "x", "1-2-3", "-1", "0-99999999999", "0-99999999"}) {
    EXPECT_TRUE(ParseCoreList(broken).empty()) << broken;
  }
}

TEST_F(MachineTest, WithoutFilesHasOneNodeAndNoQuota) {
  const CpuBudget budget = ReadCpuBudget(root_);
  ASSERT_FALSE(budget.cores.empty());
  for (const Core& core : budget.cores) EXPECT_EQ(core.node, 0);
  EXPECT_EQ(budget.usable, cores_);
}

TEST_F(MachineTest, SortsCoresByNode) {
  if (cores_ < 2) GTEST_SKIP() << "one core only";
  const std::vector<int> mine = Mine();
  Write("/sys/devices/system/node/online", "0-1");
  Write("/sys/devices/system/node/node0/cpulist", std::to_string(mine[1]));
  Write("/sys/devices/system/node/node1/cpulist", std::to_string(mine[0]));
  const CpuBudget budget = ReadCpuBudget(root_);
  const auto first_of_node_1 =
      std::find_if(budget.cores.begin(), budget.cores.end(), [](const Core& c) { return c.node; });
  ASSERT_NE(first_of_node_1, budget.cores.end());
  EXPECT_EQ(first_of_node_1->number, mine[0]);
  EXPECT_EQ(std::next(first_of_node_1), budget.cores.end());
}

TEST_F(MachineTest, TakesTheTightestQuotaOfVersion2) {
  Write("/proc/self/cgroup", "0::/pod/container");
  Write("/sys/fs/cgroup/pod/container/cpu.max", "max 100000");
  EXPECT_EQ(ReadCpuBudget(root_).usable, cores_);
  Write("/sys/fs/cgroup/pod/cpu.max", "150000 100000");
  EXPECT_EQ(ReadCpuBudget(root_).usable, 1);
  Write("/sys/fs/cgroup/pod/cpu.max", "10000 100000");
  EXPECT_EQ(ReadCpuBudget(root_).usable, 1);
}

TEST_F(MachineTest, ReadsTheQuotaOfVersion1) {
  Write("/proc/self/cgroup", "4:memory:/elsewhere\n2:cpu,cpuacct:/box\n0::/");
  Write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1");
  Write("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000");
  EXPECT_EQ(ReadCpuBudget(root_).usable, cores_);
  Write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "100000");
  EXPECT_EQ(ReadCpuBudget(root_).usable, 1);
}

TEST(StayOn, KeepsAThreadAndThoseItStartsOnItsCore) {
  const std::vector<int> mine = Mine();
  if (mine.size() < 2) GTEST_SKIP() << "one core only: nothing to choose from";
  for (const int core : mine) {
    std::vector<int> thread, child;
    std::thread([&] {
      EXPECT_TRUE(StayOn(std::vector<int>{core}));
      thread = Mine();
      EXPECT_EQ(sched_getcpu(), core);
      std::thread([&] { child = Mine(); }).join();
    }).join();
    EXPECT_EQ(thread, std::vector<int>{core});
    EXPECT_EQ(child, std::vector<int>{core});
  }
  EXPECT_EQ(Mine(), mine);
}

TEST(StayOn, WithoutCoresOrWithForeignOnesLeavesTheThreadWhereItIs) {
  const std::vector<int> mine = Mine();
  EXPECT_TRUE(StayOn({}));
  EXPECT_FALSE(StayOn(std::vector<int>{CPU_SETSIZE - 1}));
  EXPECT_EQ(Mine(), mine);
}

TEST(StartThreadsOn, PlacesTheThreadsStartedMeanwhileOnly) {
  const std::vector<int> mine = Mine();
  if (mine.size() < 2) GTEST_SKIP() << "one core only: nothing to choose from";
  const std::vector<int> last = {mine.back()};
  std::vector<int> inside, after;
  {
    const StartThreadsOn here(last);
    std::thread([&] { inside = Mine(); }).join();
  }
  std::thread([&] { after = Mine(); }).join();
  EXPECT_EQ(inside, last);
  EXPECT_EQ(after, mine);
  EXPECT_EQ(Mine(), mine);
}

TEST(ThreadPool, HelpersStayOnTheirCores) {
  const std::vector<int> mine = Mine();
  if (mine.size() < 2) GTEST_SKIP() << "one core only: nothing to choose from";
  // Two threads on the first core, which the kernel would not choose; the caller is not pinned.
  ThreadPool pool(3, {{}, {mine[0]}, {mine[0]}});
  std::vector<std::vector<int>> masks(3);
  auto* barrier = new absl::Barrier(3);
  pool.ParallelFor(3, [&](int64_t i) {
    masks[static_cast<size_t>(i)] = Mine();
    if (barrier->Block()) delete barrier;  // so that each task runs on its own thread
  });
  EXPECT_EQ(std::count(masks.begin(), masks.end(), std::vector<int>{mine[0]}), 2);
  EXPECT_EQ(std::count(masks.begin(), masks.end(), mine), 1);
}

}  // namespace
}  // namespace tug
