// SPDX-License-Identifier: Apache-2.0
// Tests jobs whose servers all-reduce sums (`exchange: ALL_REDUCE`).

#include <string>

#include "coordinator/coordinator_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CoordinatorOptions Options(uint32_t nodes) {
  CoordinatorOptions options = JobUnderTest::Options(nodes, nodes, 10, 0, 2 * nodes);
  options.config.set_exchange(JobConfig::ALL_REDUCE);
  options.config.mutable_cluster()->set_lanes_per_server(1);
  return options;
}

uint32_t Join(JobUnderTest& job, NodeKind kind, uint64_t incarnation, uint64_t host_id) {
  RegisterRequest request = job.Request(kind, incarnation);
  request.set_host_id(host_id);
  if (kind == SERVER) request.add_lane_endpoints("tcp://h:" + std::to_string(incarnation));
  const auto reply = job.coordinator().OnRegister(request, job.now());
  EXPECT_TRUE(reply.ok()) << reply.status();
  return reply->node_id();
}

TEST(CoordinatorAllReduce, SaysWhichServerIsBesideAWorker) {
  JobUnderTest job(Options(2));
  const uint32_t server_a = Join(job, SERVER, 1, 50);
  const uint32_t worker_b = Join(job, WORKER, 2, 60);
  const uint32_t server_b = Join(job, SERVER, 3, 60);
  const uint32_t worker_a = Join(job, WORKER, 4, 50);
  const HeartbeatReply reply = job.Send(job.Beat(worker_a));
  ASSERT_TRUE(reply.has_view());
  ASSERT_EQ(reply.view().workers_size(), 2);
  for (const WorkerAssignment& worker : reply.view().workers()) {
    EXPECT_EQ(worker.server_node_id(), worker.node_id() == worker_a ? server_a : server_b);
    EXPECT_EQ(worker.virtual_workers(0), worker.node_id() == worker_b ? 0u : 2u);
  }
}

TEST(CoordinatorAllReduce, StatusHasTheRankOfAWorkerAndItsServer) {
  JobUnderTest job(Options(2));
  Join(job, SERVER, 1, 50);  // of worker 4
  Join(job, WORKER, 2, 60);
  Join(job, SERVER, 3, 60);
  EXPECT_FALSE(job.coordinator().OnStatus(job.now()).nodes(0).has_all_reduce_rank()) << "no view";
  Join(job, WORKER, 4, 50);
  const StatusReply status = job.coordinator().OnStatus(job.now());
  EXPECT_TRUE(status.all_reduces());
  for (const NodeStatus& node : status.nodes()) {
    const bool first = node.node_id() == 2 || node.node_id() == 3;
    EXPECT_EQ(node.all_reduce_rank(), first ? 0u : 1u) << node.node_id();
  }
}

TEST(CoordinatorAllReduce, PushAndPullHasNoServerBesideAWorker) {
  CoordinatorOptions options = Options(1);
  options.config.set_exchange(JobConfig::PUSH_PULL);
  JobUnderTest job(options);
  Join(job, SERVER, 1, 50);
  const HeartbeatReply reply = job.Send(job.Beat(Join(job, WORKER, 2, 50)));
  ASSERT_TRUE(reply.has_view());
  EXPECT_EQ(reply.view().workers(0).server_node_id(), 0u);
}

TEST(CoordinatorAllReduce, RefusesDrainsAndFailsOnAnyLoss) {
  JobUnderTest job(Options(2));
  for (uint64_t i = 1; i <= 2; ++i) Join(job, SERVER, i, 50);
  for (uint64_t i = 3; i <= 4; ++i) Join(job, WORKER, i, 50);
  for (uint32_t id = 1; id <= 4; ++id) job.Send(job.ReadyBeat(id));
  ASSERT_EQ(job.coordinator().phase(), RUNNING);
  for (const char* node : {"server-0", "worker-0"}) {
    const auto drained = job.coordinator().OnDrain(node, job.now());
    EXPECT_THAT(std::string(drained.status().message()),
                AllOf(HasSubstr("cannot leave"), HasSubstr("ALL_REDUCE"), HasSubstr("tug stop")));
  }
  job.coordinator().OnGone(2, kJob, job.now());
  EXPECT_EQ(job.coordinator().phase(), FAILED);
  EXPECT_THAT(job.Send(job.Beat(1)).failure(), HasSubstr("server-1 (host, pid 2) was lost"));
}

}  // namespace
}  // namespace tug
