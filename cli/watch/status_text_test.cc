// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/status_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

NodeStatus Server() {
  NodeStatus node;
  node.set_node_id(2);
  node.set_name("server-1");
  node.set_life(1);
  node.set_kind(SERVER);
  node.set_host("host");
  node.set_pid(7);
  node.add_lane_endpoints("tcp://h:1");
  return node;
}

TEST(NodeText, SaysWhatAServerHolds) {
  NodeStatus node = Server();
  node.set_segments(12);
  EXPECT_THAT(NodeText(node), HasSubstr("server-1 on host (pid 7, node 2), last heartbeat"));
  node.set_life(2);
  EXPECT_THAT(NodeText(node), HasSubstr("server-1 on host (pid 7, node 2, second life), last"));
  EXPECT_THAT(NodeText(node), HasSubstr("lanes tcp://h:1, 12 segments, memory"));
  node.set_copies(1);
  EXPECT_THAT(NodeText(node), HasSubstr("12 segments, 1 replica, memory"));
  node.set_copies(12);
  node.set_copies_missing(3);
  EXPECT_THAT(NodeText(node), HasSubstr("12 segments, 12 replicas (3 being made), memory"));
  EXPECT_THAT(NodeText(node), Not(HasSubstr("draining")));
  node.set_draining(true);
  EXPECT_THAT(NodeText(node), HasSubstr(", draining"));
}

TEST(NodeText, SaysWhoStandsBy) {
  NodeStatus node = Server();
  node.set_spare(true);
  EXPECT_THAT(NodeText(node), HasSubstr("lanes tcp://h:1, spare, memory"));
}

TEST(NodeText, SaysWhatWasSentAndWhatEncodingTook) {
  NodeStatus node = Server();
  EXPECT_THAT(NodeText(node), AllOf(Not(HasSubstr("sent")), Not(HasSubstr("coding"))));
  node.mutable_counters()->set_socket_bytes(2'500'000);
  node.mutable_counters()->set_encode_seconds(1.25);
  node.mutable_counters()->set_decode_seconds(0.5);
  EXPECT_THAT(NodeText(node),
              HasSubstr(", sent 2.5 MB over the network, 1.25 s of encoding, 0.50 s of decoding"));
  node.mutable_counters()->set_shared_memory_bytes(70'000'000);
  EXPECT_THAT(
      NodeText(node),
      HasSubstr(", sent 2.5 MB over the network and 70.0 MB through shared memory, 1.25 s"));
  node.mutable_counters()->clear_socket_bytes();
  EXPECT_THAT(NodeText(node), HasSubstr(", sent 70.0 MB through shared memory, 1.25 s"));
}

TEST(NodeText, SaysTheRankInAnAllReduce) {
  NodeStatus node = Server();
  EXPECT_THAT(NodeText(node), Not(HasSubstr("rank")));
  node.set_all_reduce_rank(0);
  EXPECT_THAT(NodeText(node), HasSubstr("0 segments, rank 0, memory"));
}

TEST(NodeText, SaysWhereMetricsAre) {
  NodeStatus node = Server();
  EXPECT_THAT(NodeText(node), Not(HasSubstr("metrics")));
  node.set_metrics_endpoint("10.0.0.2:9464");
  EXPECT_THAT(NodeText(node), HasSubstr(", metrics at 10.0.0.2:9464"));
}

TEST(NodeText, SaysWhatIsHeldForTraining) {
  NodeStatus node = Server();
  EXPECT_THAT(NodeText(node), Not(HasSubstr("for training")));
  node.mutable_counters()->set_weight_bytes(8'000'000);
  node.mutable_counters()->set_optimizer_bytes(8'000'000);
  node.mutable_counters()->set_sum_bytes(4'000'000);
  EXPECT_THAT(NodeText(node), HasSubstr(", 20.0 MB held for training"));
}

TEST(NodeText, SaysWhatAWorkerCarries) {
  NodeStatus node;
  node.set_kind(WORKER);
  node.add_virtual_workers(0);
  node.add_virtual_workers(2);
  EXPECT_THAT(NodeText(node), HasSubstr("virtual workers 0 2, memory"));
}

TEST(CopiesText, SaysWhetherALossOfAServerWouldBeOutlived) {
  StatusReply status;
  status.set_replicas(1);
  status.set_segments(24);
  EXPECT_EQ(CopiesText(status), "") << "nobody asked for copies";
  status.set_replicas(2);
  EXPECT_EQ(CopiesText(status), "all segments have 2 copies");
  status.set_segments_at_risk(5);
  EXPECT_EQ(CopiesText(status), "5 of 24 segments have no replica");
  status.set_segments_at_risk(1);
  EXPECT_EQ(CopiesText(status), "1 of 24 segments has no replica");
  status.set_segments(0);
  EXPECT_EQ(CopiesText(status), "") << "there are none yet";
}

}  // namespace
}  // namespace tug
