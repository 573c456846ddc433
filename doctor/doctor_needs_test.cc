// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor_needs.h"

#include "config/job_config.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

JobConfig Job(const std::vector<std::string>& overrides = {}) {
  return ParseJobConfig(
             "name: 'a' data { path: 'text.txt' } "
             "model { layers: 2 width: 64 heads: 2 context: 32 } "
             "cluster { servers: 1 workers: 2 lanes_per_server: 2 compute_threads: 3 }",
             "test", overrides)
      .value();
}

TEST(NeedsOf, DealsAsLaunchDoes) {
  const auto hosts = ParseHostsFile("a role=coordinator,server\nb slots=2\nc role=server\n", "h");
  const auto needs = NeedsOf(Job(), *hosts);
  ASSERT_TRUE(needs.ok()) << needs.status();
  ASSERT_EQ(needs->size(), 3u);
  EXPECT_TRUE((*needs)[0].coordinates);
  EXPECT_EQ((*needs)[0].servers, 1);
  EXPECT_EQ((*needs)[1].workers, 2);
  EXPECT_EQ((*needs)[2].processes(), 0);
  EXPECT_EQ((*needs)[2].memory_bytes, 0u);
  EXPECT_GT((*needs)[1].memory_bytes, 2u << 20);
  EXPECT_TRUE((*needs)[0].keeps_run());
  EXPECT_FALSE((*needs)[1].keeps_run());
  EXPECT_FALSE((*needs)[1].wants_gpu);
}

TEST(NeedsOf, SaysWhoWantsAGpu) {
  const auto hosts = ParseHostsFile("a role=coordinator,server\nb\n", "h");
  const auto needs = NeedsOf(Job({"device=CUDA"}), *hosts);
  EXPECT_FALSE((*needs)[0].wants_gpu);
  EXPECT_TRUE((*needs)[1].wants_gpu);
}

TEST(NeedsOf, HasNoFormulaForAReplay) {
  const auto hosts = ParseHostsFile("a\n", "h");
  const JobConfig replay =
      ParseJobConfig("name: 'a' compute: REPLAY replay { profile: 'vgg16' }", "test", {}).value();
  EXPECT_EQ(NeedsOf(replay, *hosts)->at(0).memory_bytes, 0u);
  EXPECT_EQ(ExchangedBytes(replay), 0u);
}

TEST(ComputeThreads, WorkersDivideTheHost) {
  const HostNeeds needs{.has_job = true, .servers = 1, .workers = 2};
  EXPECT_EQ(ComputeThreads(Job(), needs, 8, false), 2 * 3);
  const JobConfig open = Job({"cluster.compute_threads=0"});
  EXPECT_EQ(ComputeThreads(open, needs, 8, false), 2 * 3) << "a core is for its exchange";
  EXPECT_LE(ComputeThreads(open, needs, 8, true), 8) << "tug train divides the host";
}

TEST(ExchangedBytes, AreOfAllVirtualWorkersOfAWorker) {
  EXPECT_EQ(ExchangedBytes(Job({"cluster.virtual_workers=4", "train.global_batch=4"})),
            2 * ExchangedBytes(Job()));
  EXPECT_EQ(ExchangedBytes(Job({"comm.push_codec.top_k.density=0.01"})), 0u);
}

}  // namespace
}  // namespace tug
