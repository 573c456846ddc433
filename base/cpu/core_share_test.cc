// SPDX-License-Identifier: Apache-2.0
#include "base/cpu/core_share.h"

#include <set>

#include "gtest/gtest.h"

namespace tug {
namespace {

CpuBudget Machine(int cores) {
  CpuBudget machine{.cores = {}, .usable = cores};
  for (int i = 0; i < cores; ++i) machine.cores.push_back({i, 2 * i / cores});
  return machine;
}

TEST(CoreShare, IsTheWholeOfOneProcess) {
  EXPECT_EQ(ShareOf(Machine(5), {}).cores.size(), 5u);
  EXPECT_EQ(ShareOf(Machine(5), {}).usable, 5);
}

TEST(CoreShare, NeverOverlaps) {
  for (int cores = 1; cores <= 17; ++cores) {
    for (int processes = 2; processes <= 8; ++processes) {
      std::set<int> taken;
      for (int i = 0; i < processes; ++i) {
        const CpuBudget part = ShareOf(Machine(cores), {i, processes});
        EXPECT_EQ(part.usable, std::max(1, cores / processes));
        if (cores < processes) {
          EXPECT_TRUE(part.cores.empty());
          continue;
        }
        EXPECT_EQ(static_cast<int>(part.cores.size()), part.usable);
        for (const Core& core : part.cores) EXPECT_TRUE(taken.insert(core.number).second);
      }
    }
  }
}

TEST(CoreShare, IsOfTimeUnderAQuota) {
  CpuBudget machine = Machine(8);
  machine.usable = 6;
  const CpuBudget part = ShareOf(machine, {1, 2});
  EXPECT_TRUE(part.cores.empty());
  EXPECT_EQ(part.usable, 3);
}

}  // namespace
}  // namespace tug
