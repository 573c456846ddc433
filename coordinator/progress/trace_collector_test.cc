// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/trace_collector.h"

#include "control/trace_messages.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

TraceChunk Chunk(uint32_t node_id, uint32_t sequence, uint32_t track, int spans) {
  TraceChunk chunk;
  chunk.set_node_id(node_id);
  chunk.set_sequence(sequence);
  chunk.set_track(track);
  chunk.set_track_name(track == 0 ? "compute" : "exchange");
  chunk.set_clock_offset_ns(1000);
  chunk.set_clock_error_ns(30);
  for (int i = 0; i < spans; ++i) {
    *chunk.add_spans() = ToMessage({.kind = TraceKind::kForward,
                                    .block = static_cast<uint32_t>(i),
                                    .begin_ns = 5,
                                    .end_ns = 7});
  }
  return chunk;
}

TEST(TraceCollector, PutsTracksTogetherAndAlignsTheirClocks) {
  TraceCollector collector;
  ASSERT_TRUE(collector.Add(Chunk(3, 0, 0, 2)).ok());
  ASSERT_TRUE(collector.Add(Chunk(1, 0, 0, 1)).ok());
  ASSERT_TRUE(collector.Add(Chunk(3, 1, 0, 3)).ok());
  ASSERT_TRUE(collector.Add(Chunk(3, 2, 1, 0)).ok());
  const auto nodes = collector.Take();
  ASSERT_EQ(nodes.size(), 2u);
  const TracedNode& node = nodes.at(3);
  EXPECT_EQ(node.clock_error_ns, 30u);
  ASSERT_EQ(node.tracks.size(), 2u);
  EXPECT_EQ(node.tracks[0].name, "compute");
  EXPECT_EQ(node.tracks[1].name, "exchange");
  ASSERT_EQ(node.tracks[0].events.size(), 5u);
  EXPECT_EQ(node.tracks[0].events[0].begin_ns, 1005);
  EXPECT_EQ(node.tracks[0].events[0].end_ns, 1007);
}

TEST(TraceCollector, TakesAChunkOnceAndInOrder) {
  TraceCollector collector;
  ASSERT_TRUE(collector.Add(Chunk(3, 0, 0, 2)).ok());
  EXPECT_TRUE(collector.Add(Chunk(3, 0, 0, 2)).ok()) << "a repeat";
  EXPECT_EQ(collector.Add(Chunk(3, 2, 0, 2)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(collector.Add(Chunk(3, 1, 7, 2)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(collector.Take().at(3).tracks[0].events.size(), 2u);
}

TEST(TraceCollector, LeavesOutWhatNoNodeRecords) {
  TraceCollector collector;
  TraceChunk chunk = Chunk(3, 0, 0, 2);
  chunk.mutable_spans(0)->set_kind(200);
  ASSERT_TRUE(collector.Add(chunk).ok());
  EXPECT_EQ(collector.Take().at(3).tracks[0].events.size(), 1u);
}

TEST(TraceCollector, BoundsWhatANodeSaysOfItself) {
  TraceCollector collector;
  TraceChunk chunk = Chunk(3, 0, 0, 2);
  chunk.set_track_name(std::string(TraceCollector::kMaxTrackName + 1, 'x'));
  EXPECT_EQ(collector.Add(chunk).code(), absl::StatusCode::kInvalidArgument);
  chunk = Chunk(3, 0, 0, 2);
  chunk.set_clock_error_ns(~uint64_t{0});
  ASSERT_TRUE(collector.Add(chunk).ok());
  EXPECT_LE(collector.Take().at(3).clock_error_ns, uint64_t{1} << 60);
}

TEST(TraceCollector, IsBounded) {
  TraceCollector collector;
  const int spans = static_cast<int>(kTraceChunkEvents);
  TraceChunk chunk = Chunk(3, 0, 0, spans);
  const uint32_t chunks = TraceCollector::kMaxEvents / kTraceChunkEvents;
  for (uint32_t i = 0; i < chunks; ++i) {
    chunk.set_sequence(i);
    ASSERT_TRUE(collector.Add(chunk).ok());
  }
  chunk.set_sequence(chunks);
  const absl::Status full = collector.Add(chunk);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(full.ToString().find("--trace-steps"), std::string::npos) << full;
  TraceChunk large = Chunk(4, 0, 0, spans + 1);
  EXPECT_EQ(TraceCollector().Add(large).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tug
