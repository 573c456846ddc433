// SPDX-License-Identifier: Apache-2.0
#include "coordinator/trace/trace_figures.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr int64_t kMs = 1'000'000;

TraceEvent Span(TraceKind kind, uint64_t clock, int64_t begin_ms, int64_t end_ms,
                uint32_t block = 0, uint64_t bytes = 0) {
  return {.kind = kind,
          .block = block,
          .clock = clock,
          .bytes = bytes,
          .begin_ns = begin_ms * kMs,
          .end_ns = end_ms * kMs};
}

// One worker. Step 4 lasts from 100 to 200 ms: 20 ms waiting for the weights of step 3, 50 ms in
// passes; its own pushes and pulls are open from 160 ms on.
JobTrace OneStep() {
  JobTrace trace;
  trace.range = {4, 5};
  trace.nodes.resize(2);
  trace.nodes[0].node_id = 1;
  trace.nodes[0].kind = SERVER;
  trace.nodes[0].tracks = {{"lane 0", 0, {Span(TraceKind::kSum, 4, 0, 1000)}}};
  TracedNode& worker = trace.nodes[1];
  worker.node_id = 2;
  worker.kind = WORKER;
  worker.tracks = {
      {"compute",
       0,
       {Span(TraceKind::kStep, 3, 50, 100), Span(TraceKind::kWait, 4, 100, 120),
        Span(TraceKind::kForward, 4, 120, 140), Span(TraceKind::kBackward, 4, 140, 170),
        Span(TraceKind::kStep, 4, 100, 200)}},
      {"exchange",
       0,
       {Span(TraceKind::kPull, 3, 60, 120, 0, 7), Span(TraceKind::kQueue, 4, 160, 165, 1),
        Span(TraceKind::kQueue, 4, 160, 168, 1), Span(TraceKind::kPush, 4, 165, 172, 1, 100),
        Span(TraceKind::kPush, 4, 168, 180, 1, 100), Span(TraceKind::kPull, 4, 190, 230, 1, 150)}}};
  return trace;
}

TEST(TraceFigures, SayWhereAStepGoes) {
  const std::vector<StepFigures> figures = FiguresOf(OneStep());
  ASSERT_EQ(figures.size(), 1u) << "of the worker, and of the range";
  const StepFigures& step = figures[0];
  EXPECT_EQ(step.node_id, 2u);
  EXPECT_EQ(step.clock, 4u);
  EXPECT_DOUBLE_EQ(step.seconds, 0.100);
  EXPECT_DOUBLE_EQ(step.compute_seconds, 0.050);
  EXPECT_DOUBLE_EQ(step.exposed_seconds, 0.020);
  // Intervals 100 to 120, 160 to 180, 190 to 200.
  EXPECT_DOUBLE_EQ(step.communication_seconds, 0.050);
  EXPECT_DOUBLE_EQ(step.overlap(), 0.6);
  EXPECT_EQ(step.pushed_bytes, 200u);
  EXPECT_EQ(step.pulled_bytes, 150u);
  ASSERT_EQ(step.queue_seconds.size(), 1u);
  EXPECT_DOUBLE_EQ(step.queue_seconds.at(1), 0.008) << "the longest";
}

// The compute thread only queues work for the device.
TEST(TraceFigures, ComputingIsTheDevicesWhereItHasATrack) {
  JobTrace trace = OneStep();
  trace.nodes[1].tracks.push_back(
      {"device",
       0,
       {Span(TraceKind::kForward, 4, 121, 150), Span(TraceKind::kBackward, 4, 150, 190)}});
  const std::vector<StepFigures> figures = FiguresOf(trace);
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_DOUBLE_EQ(figures[0].compute_seconds, 0.069);
  EXPECT_DOUBLE_EQ(figures[0].exposed_seconds, 0.020);
}

TEST(TraceFigures, WithoutCommunicationNothingIsExposed) { EXPECT_EQ(StepFigures().overlap(), 1); }

TEST(TraceFigures, MeanIsOverWorkersAndSteps) {
  const StepFigures mean =
      MeanOf({{.compute_seconds = 1, .exposed_seconds = 3, .pushed_bytes = 4},
              {.compute_seconds = 2, .exposed_seconds = 0, .pushed_bytes = 8}});
  EXPECT_DOUBLE_EQ(mean.compute_seconds, 1.5);
  EXPECT_DOUBLE_EQ(mean.exposed_seconds, 1.5);
  EXPECT_EQ(mean.pushed_bytes, 6u);
}

}  // namespace
}  // namespace tug
