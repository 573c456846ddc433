// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_COORDINATOR_SERVERS_TEST_SUPPORT_H_
#define TUG_COORDINATOR_COORDINATOR_SERVERS_TEST_SUPPORT_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/coordinator_test_support.h"
#include "gtest/gtest.h"

namespace tug {

// Two lanes per server, twelve segments of 10 bytes, four virtual workers, two workers.
class CoordinatorServersTest : public ::testing::Test {
 protected:
  static CoordinatorOptions Options(uint32_t servers, uint32_t replicas, uint32_t spares = 0) {
    CoordinatorOptions options = JobUnderTest::Options(servers, 2, 10, 0, 4);
    options.config.mutable_sync()->set_replicas(replicas);
    options.config.mutable_cluster()->set_spare_servers(spares);
    options.config.mutable_fault()->set_max_rollbacks(1);
    options.layout.segment_bytes.assign(kSegments, 10);
    return options;
  }
  static constexpr uint32_t kSegments = 12;

  // Servers, spares and workers join and run; ids are in that order, from 1.
  void Begin(const CoordinatorOptions& options) {
    job_ = std::make_unique<JobUnderTest>(options);
    const ClusterConfig& cluster = options.config.cluster();
    for (uint32_t i = 0; i < cluster.servers(); ++i) Add(SERVER);
    for (uint32_t i = 0; i < cluster.spare_servers(); ++i) Add(SERVER, /*spare=*/true);
    for (uint32_t i = 0; i < cluster.workers(); ++i) Add(WORKER);
    Settle();
    ASSERT_EQ(job_->coordinator().phase(), RUNNING);
  }
  NodeUnderTest& Add(NodeKind kind, bool spare = false) {
    const uint32_t id = job_->Join(kind, 1 + nodes_.size(), spare);
    nodes_.push_back(std::make_unique<NodeUnderTest>(*job_, id));
    return *nodes_.back();
  }
  NodeUnderTest& Node(uint32_t id) { return *nodes_.at(id - 1); }
  bool Lives(uint32_t id) const { return !dead_.contains(id) && !nodes_.at(id - 1)->left; }

  // All nodes send heartbeats, enough times for the job to settle.
  void Settle() {
    for (int i = 0; i < 12; ++i) {
      for (const auto& node : nodes_) {
        if (!Lives(node->id())) continue;
        node->Beat();
        if (node->left) Gone(node->id());
      }
    }
  }
  void Gone(uint32_t id) { job_->coordinator().OnGone(id, kJob, job_->now()); }
  void Lose(uint32_t id) {
    dead_.insert(id);
    Gone(id);
  }
  std::string Notices() {
    std::string all;
    for (const NoticeAction& notice : job_->Take<NoticeAction>()) all += notice.text + "\n";
    return all;
  }
  NodeStatus StatusOf(uint32_t id) const {
    const StatusReply status = job_->coordinator().OnStatus(job_->now());
    for (const NodeStatus& node : status.nodes()) {
      if (node.node_id() == id) return node;
    }
    return NodeStatus();
  }
  uint32_t AtRisk() const { return job_->coordinator().OnStatus(job_->now()).segments_at_risk(); }
  absl::StatusOr<DrainReply> Drain(uint32_t id) {
    return job_->coordinator().OnDrain(StatusOf(id).name(), job_->now());
  }
  // Servers that own segments in the view.
  static std::set<uint32_t> Owners(const View& view) {
    std::set<uint32_t> owners;
    for (const uint32_t lane : view.lane_of_segment()) {
      owners.insert(view.lanes(static_cast<int>(lane)).server_node_id());
    }
    return owners;
  }

  std::unique_ptr<JobUnderTest> job_;
  std::vector<std::unique_ptr<NodeUnderTest>> nodes_;
  std::set<uint32_t> dead_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_COORDINATOR_SERVERS_TEST_SUPPORT_H_
