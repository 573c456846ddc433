// SPDX-License-Identifier: Apache-2.0
// Tests traced jobs: when nodes are asked for their recordings, and the resulting trace.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "control/trace_messages.h"
#include "coordinator/coordinator_test_support.h"

namespace tug {
namespace {

// One server (1) and one worker (2); steps 3 and 4 of 10 are traced.
class TracedJob : public JobUnderTest {
 public:
  TracedJob() : JobUnderTest(Traced()) { Run(1, 1); }

  static CoordinatorOptions Traced() {
    CoordinatorOptions options = Options(1, 1, 10, 0, 1);
    options.config.mutable_trace()->set_first_step(3);
    options.config.mutable_trace()->set_steps(2);
    options.layout.blocks.add_blocks()->set_name("embedding");
    return options;
  }

  HeartbeatReply Step(uint64_t clock) { return Send(WithStep(ReadyBeat(2), 0, clock)); }
  absl::Status SendChunk(uint32_t node_id) {
    TraceChunk chunk;
    chunk.set_node_id(node_id);
    chunk.set_job(kJob);
    chunk.set_track_name("track");
    chunk.add_spans()->set_clock(2);
    return coordinator().OnTrace(chunk, now()).status();
  }
  HeartbeatRequest Sent(uint32_t node_id) const {
    HeartbeatRequest beat = ReadyBeat(node_id);
    beat.set_trace_sent(true);
    return beat;
  }
  // Completes the last step and commits its checkpoint.
  void EndAllSteps() {
    for (uint64_t clock = 0; clock < 10; ++clock) Step(clock);
    for (uint32_t lane = 0; lane < 2; ++lane) Send(WithPart(ReadyBeat(1), lane, 10));
    coordinator().OnCheckpointCommitted(10, absl::OkStatus(), now());
    HeartbeatRequest finished = ReadyBeat(2);
    finished.set_finished(true);
    Send(finished);
  }
};

TEST(TracedCoordinator, AsksForTheTraceOnceTheStepAfterTheLastTracedIsDone) {
  TracedJob job;
  for (uint64_t clock = 0; clock < 4; ++clock) EXPECT_FALSE(job.Step(clock).trace_wanted());
  EXPECT_TRUE(job.Step(4).trace_wanted());
  ASSERT_TRUE(job.SendChunk(1).ok());
  ASSERT_TRUE(job.SendChunk(2).ok());
  EXPECT_TRUE(job.Send(job.Sent(1)).trace_wanted());
  EXPECT_TRUE(job.Take<TraceCompleted>().empty());
  EXPECT_FALSE(job.Send(job.Sent(2)).trace_wanted());
  const auto completed = job.Take<TraceCompleted>();
  ASSERT_EQ(completed.size(), 1u);
  const JobTrace& trace = completed[0].trace;
  EXPECT_EQ(trace.range.first, 2u);
  EXPECT_EQ(trace.range.end, 4u);
  EXPECT_EQ(trace.block_names, std::vector<std::string>{"embedding"});
  EXPECT_TRUE(trace.silent.empty());
  ASSERT_EQ(trace.nodes.size(), 2u);
  EXPECT_EQ(trace.nodes[0].kind, SERVER);
  EXPECT_EQ(trace.nodes[1].name, "worker-0");
  EXPECT_EQ(trace.nodes[1].place, "host, pid 101");
  EXPECT_EQ(trace.nodes[1].tracks[0].events.size(), 1u);
}

TEST(TracedCoordinator, DoesNotEndBeforeTheTraceIsIn) {
  TracedJob job;
  job.EndAllSteps();
  EXPECT_EQ(job.coordinator().phase(), RUNNING);
  EXPECT_TRUE(job.Send(job.ReadyBeat(1)).trace_wanted());
  job.Send(job.Sent(1));
  EXPECT_EQ(job.coordinator().phase(), RUNNING);
  job.Send(job.Sent(2));
  EXPECT_EQ(job.coordinator().phase(), DONE);
  EXPECT_EQ(job.Take<TraceCompleted>().size(), 1u);
}

TEST(TracedCoordinator, EndsWithoutANodeThatSendsNothing) {
  TracedJob job;
  job.EndAllSteps();
  ASSERT_TRUE(job.SendChunk(1).ok());
  job.Send(job.Sent(1));
  for (absl::Duration passed; passed < JobTracing::kPatience; passed += absl::Seconds(3)) {
    EXPECT_EQ(job.coordinator().phase(), RUNNING);
    job.Send(job.ReadyBeat(1));
    job.Send(job.ReadyBeat(2));
    job.Pass(absl::Seconds(3));
  }
  EXPECT_EQ(job.coordinator().phase(), DONE);
  const auto completed = job.Take<TraceCompleted>();
  ASSERT_EQ(completed.size(), 1u);
  EXPECT_EQ(completed[0].trace.nodes.size(), 1u);
  EXPECT_EQ(completed[0].trace.silent, std::vector<std::string>{"worker-0 (host, pid 101)"});
}

TEST(TracedCoordinator, SaysOfWhichNodeItRefusedAPart) {
  TracedJob job;
  for (uint64_t clock = 0; clock <= 4; ++clock) job.Step(clock);
  ASSERT_TRUE(job.SendChunk(1).ok());
  ASSERT_TRUE(job.SendChunk(2).ok());
  TraceChunk large;
  large.set_node_id(2);
  large.set_job(kJob);
  large.set_sequence(1);
  for (size_t i = 0; i <= kTraceChunkEvents; ++i) large.add_spans();
  EXPECT_EQ(job.coordinator().OnTrace(large, job.now()).status().code(),
            absl::StatusCode::kResourceExhausted);
  job.Send(job.Sent(1));
  job.Send(job.Sent(2));  // after a warning it gives up
  const auto completed = job.Take<TraceCompleted>();
  ASSERT_EQ(completed.size(), 1u);
  EXPECT_EQ(completed[0].trace.silent, std::vector<std::string>{"worker-0 (host, pid 101)"});
}

TEST(TracedCoordinator, TakesATraceOfMembersOnly) {
  TracedJob job;
  EXPECT_EQ(job.SendChunk(9).code(), absl::StatusCode::kNotFound);
}

TEST(Coordinator, TellsItsTimeAndWantsNoTraceUnlessAsked) {
  JobUnderTest job(1, 1);
  job.Run(1, 1);
  job.Pass(absl::Nanoseconds(1234));
  for (uint64_t clock = 0; clock < 10; ++clock) {
    const HeartbeatReply reply = job.Send(WithStep(job.ReadyBeat(2), 0, clock));
    EXPECT_EQ(reply.now_ns(), 1234);
    EXPECT_FALSE(reply.trace_wanted());
  }
}

}  // namespace
}  // namespace tug
