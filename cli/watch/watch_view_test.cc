// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/watch_view.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/process_name.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

StatusReply Job(int workers) {
  StatusReply status;
  status.set_phase(RUNNING);
  status.set_name("shakespeare");
  status.set_step(340);
  status.set_steps(2000);
  status.set_loss(2.1131);
  status.set_tokens_per_second(31402);
  status.set_seconds_left(48);
  status.set_last_checkpoint(300);
  for (const char* name : {"embedding", "h.0", "h.1", "head"}) status.add_block_names(name);
  for (int w = 0; w < workers; ++w) {
    NodeStatus& node = *status.add_nodes();
    node.set_node_id(static_cast<uint32_t>(w) + 1);
    node.set_name(ProcessName(kWorkerRole, static_cast<uint32_t>(w)));
    node.set_kind(WORKER);
    node.set_host("host-a");
    node.set_pid(17);
    node.add_virtual_workers(static_cast<uint32_t>(w));
    node.set_clock(339);
    node.set_step_seconds(0.4);
    node.set_compute_seconds(0.3);
    node.set_wait_seconds(0.1);
    node.set_shared_memory_bytes_per_second(12e6);
    node.mutable_counters()->set_shared_memory_bytes(90'000'000);
    node.mutable_counters()->set_peak_memory_bytes(104'000'000);
    node.mutable_activity()->set_doing(NodeActivity::COMPUTING);
    node.mutable_activity()->set_block(2);
  }
  return status;
}

std::string Text(const std::vector<WatchLine>& lines) {
  return absl::StrJoin(lines, "\n", [](std::string* out, const WatchLine& line) {
    absl::StrAppend(out, line.text);
  });
}

TEST(WatchLines, TellTheJobAndARowForEachNode) {
  const std::string text = Text(WatchLines(Job(2), {}, {.columns = 160}));
  EXPECT_THAT(text, HasSubstr("shakespeare: running, step 340 of 2,000  [####...."));
  EXPECT_THAT(text, HasSubstr("0:48 left\nloss 2.1131  31,402 tokens/s  checkpoint of step 300\n"));
  EXPECT_THAT(text, HasSubstr("no node is slow\nNODE "));
  EXPECT_THAT(text, HasSubstr("worker-0  host-a, 17   340  400 ms: 300 | 100"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("12.0 MB/s"), HasSubstr("104.0 MB"), HasSubstr("computing h.1")));
}

TEST(WatchLines, SayOnTopWhoIsLate) {
  StatusReply status = Job(3);
  status.mutable_nodes(2)->set_step_seconds(0.9);
  const std::vector<WatchLine> lines = WatchLines(status, {}, {});
  EXPECT_THAT(lines[2].text, HasSubstr("worker-2 is slow: 800 ms per step without waiting"));
  EXPECT_EQ(lines[2].tone, WatchLine::Tone::kLate);
}

TEST(WatchLines, OmitColumnsThatTheJobHasNoValueFor) {
  StatusReply status = Job(1);
  NodeStatus& server = *status.add_nodes();
  server.set_node_id(9);
  server.set_kind(SERVER);
  const auto text = [&status] { return Text(WatchLines(status, {}, {.columns = 160})); };
  EXPECT_THAT(text(), AllOf(HasSubstr("SHARED MEMORY"), Not(HasSubstr("NETWORK")),
                            Not(HasSubstr("STALE")), Not(HasSubstr("RANK"))));
  status.set_has_staleness(true);
  EXPECT_THAT(text(), HasSubstr("STALE"));
  server.mutable_counters()->set_socket_bytes(1000);
  EXPECT_THAT(text(), HasSubstr("NETWORK"));
}

TEST(WatchLines, SayHowARunAllReducesAndItsRanks) {
  StatusReply status = Job(1);
  status.set_all_reduces(true);
  NodeStatus& server = *status.add_nodes();
  server.set_node_id(9);
  server.set_name("server-0");
  server.set_kind(SERVER);
  server.mutable_activity()->add_algorithms("ring");
  server.set_all_reduce_rank(0);
  const std::string text = Text(WatchLines(status, {}, {.columns = 160}));
  EXPECT_THAT(text, HasSubstr("checkpoint of step 300\nall-reduce of 1 rank: nothing is sent\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("NODE      RANK"), HasSubstr("server-0     0")));
}

TEST(WatchLines, FitTheScreen) {
  const StatusReply status = Job(40);
  for (const size_t columns : {1u, 20u, 63u, 80u, 99u, 120u, 200u}) {
    for (const size_t rows : {1u, 2u, 5u, 10u, 44u, 100u}) {
      const std::vector<WatchLine> lines = WatchLines(status, {}, {columns, rows});
      EXPECT_LE(lines.size(), rows) << columns;
      for (const WatchLine& line : lines) EXPECT_LE(ColumnsOf(line.text), columns);
    }
  }
  EXPECT_THAT(Text(WatchLines(status, {}, {80, 10})), HasSubstr("and 35 more nodes"));
  EXPECT_THAT(Text(WatchLines(status, {}, {80, 44})), Not(HasSubstr("more nodes")));
}

TEST(WatchLines, ReplacesControlCharactersInNodeTexts) {
  StatusReply status = Job(1);
  status.mutable_nodes(0)->set_host("\x1b[2Jx\xc2\x9b");
  status.set_failure("line\nbreak");
  const std::string text = Text(WatchLines(status, {}, {.columns = 160}));
  EXPECT_THAT(text, HasSubstr("?[2Jx?"));
  EXPECT_THAT(text, HasSubstr("line?break"));
}

TEST(LossTrail, DrawsFromHighToLow) {
  LossTrail trail;
  trail.Add(1, 8);
  EXPECT_EQ(trail.Sparkline(8), "");
  for (uint64_t step = 2; step <= 8; ++step) trail.Add(step, 9.0 - static_cast<double>(step));
  trail.Add(8, 100);                                       // already reported
  trail.Add(9, std::numeric_limits<double>::quiet_NaN());  // not finite
  EXPECT_EQ(trail.Sparkline(8), "█▇▆▅▄▃▂▁");
  EXPECT_EQ(ColumnsOf(trail.Sparkline(4)), 4u);
  trail.Add(3, 5);  // the job has rolled back
  EXPECT_EQ(trail.Sparkline(8), "");
}

TEST(Clipped, CountsCharactersAndMarksWhatIsLeftOut) {
  EXPECT_EQ(Clipped("▁▂▃", 3), "▁▂▃");
  EXPECT_EQ(Clipped("▁▂▃▄", 3), "▁▂…");
  EXPECT_EQ(Clipped("abc", 0), "");
}

}  // namespace
}  // namespace tug
