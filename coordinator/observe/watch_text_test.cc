// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/watch_text.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Server 1, workers 2 to 4 with one virtual worker each, all at step 120.
StatusReply Job() {
  StatusReply status;
  status.set_phase(RUNNING);
  for (const char* name : {"embedding", "h.0", "h.1"}) status.add_block_names(name);
  NodeStatus& server = *status.add_nodes();
  server.set_node_id(1);
  server.set_kind(SERVER);
  server.set_name("server-0");
  for (uint32_t w = 0; w < 3; ++w) {
    NodeStatus& worker = *status.add_nodes();
    worker.set_node_id(2 + w);
    worker.set_name(absl::StrCat("worker-", w));
    worker.set_kind(WORKER);
    worker.add_virtual_workers(w);
    worker.set_clock(119);
    worker.set_step_seconds(0.5);
    worker.set_wait_seconds(0.1);
  }
  return status;
}

NodeActivity& At(StatusReply& status, int node, NodeActivity::Doing doing, double seconds = 0,
                 uint32_t block = 2) {
  NodeActivity& activity = *status.mutable_nodes(node)->mutable_activity();
  activity.set_doing(doing);
  activity.set_block(block);
  activity.set_seconds(seconds);
  return activity;
}

std::string TextOf(const StatusReply& status, int node) {
  return ActivityText(status.nodes(node), status);
}

TEST(ActivityText, SaysWhatANodeIsAt) {
  StatusReply status = Job();
  EXPECT_EQ(TextOf(status, 1), "");
  At(status, 1, NodeActivity::COMPUTING);
  EXPECT_EQ(TextOf(status, 1), "computing h.1");
  At(status, 1, NodeActivity::WAITING_FOR_DATA, 2.04);
  EXPECT_EQ(TextOf(status, 1), "waiting 2.0 s for data");
  At(status, 1, NodeActivity::WAITING_FOR_QUEUE, 0.01);
  EXPECT_EQ(TextOf(status, 1), "waiting for h.1: queue");
  At(status, 1, NodeActivity::WAITING_FOR_WIRE, 0.81, 7);
  EXPECT_EQ(TextOf(status, 1), "waiting 0.8 s for block 7: wire");
  At(status, 0, NodeActivity::UPDATING);
  EXPECT_EQ(TextOf(status, 0), "updating");
  status.mutable_nodes(1)->set_finished(true);
  EXPECT_EQ(TextOf(status, 1), "finished");
}

TEST(ActivityText, SaysWhoIsMissingOfASum) {
  StatusReply status = Job();
  At(status, 1, NodeActivity::WAITING_FOR_SUM, 0.8);
  EXPECT_EQ(TextOf(status, 1), "waiting 0.8 s for h.1: sum");
  NodeActivity& server = At(status, 0, NodeActivity::WAITING_FOR_SUM, 0.7);
  server.add_late(2);
  EXPECT_EQ(TextOf(status, 1), "waiting 0.8 s for h.1: sum, missing virtual worker 2 (worker-2)");
  EXPECT_EQ(TextOf(status, 0), "waiting 0.7 s for pushes of h.1: virtual worker 2 (worker-2)");
  server.set_block(0);
  EXPECT_EQ(TextOf(status, 1), "waiting 0.8 s for h.1: sum, missing virtual worker 2 (worker-2)")
      << "what comes before it is missing too";
  server.set_block(2);
  server.add_late(9);
  EXPECT_EQ(TextOf(status, 0), "waiting 0.7 s for pushes of h.1: virtual workers 2 (worker-2), 9");
  for (const uint32_t more : {10u, 11u}) server.add_late(more);
  EXPECT_EQ(TextOf(status, 0), "waiting 0.7 s for pushes of h.1: 4 virtual workers");
}

// Worker 2 with server 1, and worker 3 with server 5.
StatusReply AllReduceJob() {
  StatusReply status = Job();
  status.set_all_reduces(true);
  NodeStatus& server = *status.add_nodes();
  server.set_node_id(5);
  server.set_kind(SERVER);
  for (const int node : {0, 1}) status.mutable_nodes(node)->set_all_reduce_rank(0);
  for (const int node : {2, 4}) status.mutable_nodes(node)->set_all_reduce_rank(1);
  return status;
}

TEST(AllReduceText, NamesTheAlgorithmsInUseAndTheRanks) {
  StatusReply status = Job();
  EXPECT_EQ(AllReduceText(status), "") << "pushes and pulls";
  status.set_all_reduces(true);
  EXPECT_EQ(AllReduceText(status), "all-reduce") << "no view yet";
  status.mutable_nodes(0)->set_all_reduce_rank(0);
  EXPECT_EQ(AllReduceText(status), "all-reduce of 1 rank: nothing is sent");
  status = AllReduceJob();
  EXPECT_EQ(AllReduceText(status), "all-reduce between 2 ranks");
  for (const int server : {0, 4}) {
    status.mutable_nodes(server)->mutable_activity()->add_algorithms("ring");
  }
  EXPECT_EQ(AllReduceText(status), "all-reduce by ring between 2 ranks");
  status.mutable_nodes(4)->mutable_activity()->add_algorithms("halving_doubling");
  EXPECT_EQ(AllReduceText(status), "all-reduce by ring and halving doubling between 2 ranks");
}

TEST(ActivityText, SpeaksOfGradientsInAnAllReduce) {
  StatusReply status = AllReduceJob();
  At(status, 0, NodeActivity::WAITING_FOR_SUM, 0.7).add_late(0);
  EXPECT_EQ(TextOf(status, 0), "waiting 0.7 s for gradients of h.1: virtual worker 0 (worker-0)");
  At(status, 4, NodeActivity::UPDATING);
  EXPECT_EQ(TextOf(status, 4), "all-reducing or updating");
}

TEST(LateTexts, ReportsNoneAsLateIfAllAreMissing) {
  StatusReply status = Job();
  EXPECT_THAT(LateTexts(status), IsEmpty());
  NodeActivity& server = At(status, 0, NodeActivity::WAITING_FOR_SUM, 3);
  for (const uint32_t all : {0u, 1u, 2u}) server.add_late(all);
  EXPECT_THAT(LateTexts(status), IsEmpty()) << "all are missing";
}

TEST(LateTexts, NameWhoIsBehindSlowAndAwaited) {
  StatusReply status = Job();
  status.mutable_nodes(3)->set_clock(117);
  status.mutable_nodes(3)->set_step_seconds(0.9);
  At(status, 0, NodeActivity::WAITING_FOR_SUM, 0.8).add_late(2);
  EXPECT_THAT(
      LateTexts(status),
      ElementsAre("worker-2 is slow: step 118, others at 120; 800 ms per step without waiting, "
                  "median of the others 400 ms; server-0 has waited 0.8 s for its push of h.1"));
  status.set_phase(DONE);
  EXPECT_THAT(LateTexts(status), IsEmpty());
}

TEST(LateTexts, WorkerWithOldHeartbeatIsNotReportedAsBehind) {
  StatusReply status = Job();
  for (int node : {1, 2, 3}) {
    status.mutable_nodes(node)->set_step_seconds(0.1);
    status.mutable_nodes(node)->set_wait_seconds(0.1);
  }
  NodeStatus& worker = *status.mutable_nodes(3);
  worker.set_clock(110);
  worker.set_seconds_since_heartbeat(0.5);
  EXPECT_THAT(LateTexts(status), IsEmpty());
  worker.set_seconds_since_heartbeat(0.3);
  EXPECT_THAT(LateTexts(status), ElementsAre("worker-2 is slow: step 111, others at 120"));
}

TEST(LateTexts, WaitingIsNotBeingLate) {
  StatusReply status = Job();
  status.mutable_nodes(1)->set_step_seconds(5);
  status.mutable_nodes(1)->set_wait_seconds(4.6);
  EXPECT_THAT(LateTexts(status), IsEmpty());
}

TEST(LateTexts, NameWhoIsSilent) {
  StatusReply status = Job();
  status.mutable_nodes(0)->set_seconds_since_heartbeat(2.3);
  EXPECT_THAT(LateTexts(status), ElementsAre("server-0: no heartbeat for 2.3 s"));
}

TEST(MeanStaleness, IsThatOfAllUpdates) {
  NodeCounters counters;
  EXPECT_EQ(MeanStaleness(counters), 0);
  for (const uint64_t updates : {1u, 0u, 3u}) counters.add_staleness(updates);
  EXPECT_EQ(MeanStaleness(counters), 1.5);
}

}  // namespace
}  // namespace tug
