// SPDX-License-Identifier: Apache-2.0
#include "server/lane.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/cpu/cpu_affinity.h"
#include "config/job_config.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using Threads = std::map<std::string, std::vector<int>>;  // affinity masks by thread id

Threads ThreadsOfThisProcess() {
  constexpr char kMask[] = "Cpus_allowed_list:\t";
  Threads threads;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind(kMask, 0) != 0) continue;
      threads[task.path().filename()] = ParseCoreList(line.substr(sizeof(kMask) - 1));
    }
  }
  return threads;
}

SegmentTable SmallTable() {
  BlockTable blocks;
  TensorSpec& tensor = *blocks.add_blocks()->add_tensors();
  tensor.set_name("w");
  tensor.add_shape(8);
  return SegmentTable::Create(blocks, 1024).value();
}

TEST(LaneThread, ItsTransportsThreadsStayOnTheirCore) {
  std::vector<int> mine;
  for (const Core& core : ReadCpuBudget().cores) mine.push_back(core.number);
  if (mine.size() < 2) GTEST_SKIP() << "one core only: nothing to choose from";
  LaneJob job{.table = SmallTable()};
  FillDefaults(job.config);
  job.cores = {{.lane = {mine.front()}, .io = {mine.back()}}};
  const Threads before = ThreadsOfThisProcess();
  const auto lane = LaneThread::Bind(job, 0, "127.0.0.1");
  ASSERT_TRUE(lane.ok()) << lane.status();
  const Threads after = ThreadsOfThisProcess();
  EXPECT_GT(after.size(), before.size());
  for (const auto& [id, cores] : after) {
    EXPECT_EQ(cores, before.contains(id) ? before.at(id) : std::vector<int>{mine.back()}) << id;
  }
}

}  // namespace
}  // namespace tug
