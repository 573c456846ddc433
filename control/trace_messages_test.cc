// SPDX-License-Identifier: Apache-2.0
#include "control/trace_messages.h"

#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr TraceRange kRange{.first = 0, .end = 100};

TraceEvent Event(uint32_t number) {
  return {.kind = TraceKind::kPush,
          .block = number,
          .first_segment = 2,
          .segment_count = 3,
          .virtual_worker = 4,
          .peer = 257,
          .clock = 99,
          .bytes = uint64_t{1} << 40,
          .begin_ns = 1'700'000'000'000'000'000 + number,
          .end_ns = 1'700'000'000'000'000'500 + number};
}

TEST(TracedClocks, CountStepsFromTheStartOfTheRun) {
  TraceConfig config;
  config.set_first_step(10);
  config.set_steps(20);
  EXPECT_EQ(TracedClocks(config, 0).first, 9u);
  EXPECT_EQ(TracedClocks(config, 0).end, 29u);
  EXPECT_EQ(TracedClocks(config, 1000).first, 1009u);
  EXPECT_EQ(RecordedClocks(config, 1000).first, 1008u);
  EXPECT_EQ(RecordedClocks(config, 1000).end, 1029u);
  config.set_steps(0);
  EXPECT_FALSE(TracedClocks(config, 0).Has(9));
  EXPECT_FALSE(RecordedClocks(config, 0).Has(8));
}

TEST(TraceMessages, CarryAnEventAndAlignItsClock) {
  TraceEvent expected = Event(7);
  const auto same = FromMessage(ToMessage(expected), 0);
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(*same, expected);
  const auto later = FromMessage(ToMessage(expected), 1000);
  expected.begin_ns += 1000;
  expected.end_ns += 1000;
  EXPECT_EQ(*later, expected);
}

TEST(TraceMessages, RefuseWhatNoNodeRecords) {
  TracedSpan span = ToMessage(Event(1));
  span.set_kind(kTraceKinds);
  EXPECT_FALSE(FromMessage(span, 0).has_value());
  span = ToMessage(Event(1));
  span.set_duration_ns(~uint64_t{0});
  EXPECT_FALSE(FromMessage(span, 0).has_value());
  span = ToMessage(Event(1));
  span.set_begin_ns(int64_t{1} << 62);
  EXPECT_FALSE(FromMessage(span, int64_t{1} << 62).has_value());
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  for (const int64_t wrong : {kFirst, kFirst + 1, kLast}) {
    span = ToMessage(Event(1));
    EXPECT_FALSE(FromMessage(span, wrong).has_value());
    span.set_begin_ns(wrong);
    EXPECT_FALSE(FromMessage(span, 0).has_value());
    EXPECT_FALSE(FromMessage(span, wrong).has_value());
  }
}

TEST(TraceMessages, GiveTimesThatCanBeSubtracted) {
  constexpr int64_t kMost = int64_t{1} << 61;
  TracedSpan span = ToMessage(Event(1));
  span.set_duration_ns(uint64_t{1} << 60);
  span.set_begin_ns(kMost);
  EXPECT_FALSE(FromMessage(span, 1).has_value());
  const auto last = FromMessage(span, 0);
  ASSERT_TRUE(last.has_value());
  span.set_begin_ns(-kMost);
  const auto first = FromMessage(span, 0);
  ASSERT_TRUE(first.has_value());
  int64_t between = 0;
  EXPECT_FALSE(__builtin_sub_overflow(last->end_ns, first->begin_ns, &between));
}

TEST(TraceUpload, CutsTracksIntoChunksUntilAllHasArrived) {
  const SimulatedTime time;
  Trace trace(kRange, time);
  trace.AddTrack("quiet");
  TraceTrack* busy = trace.AddTrack("busy");
  constexpr uint32_t kEvents = 2 * kTraceChunkEvents + 1;
  for (uint32_t i = 0; i < kEvents; ++i) busy->Add(Event(i));
  TraceUpload upload(trace, {.offset_ns = -5, .error_ns = 3});
  std::vector<std::string> tracks;
  uint32_t seen = 0;
  for (uint32_t sequence = 0; !upload.done(); ++sequence) {
    const TraceChunk chunk = upload.Next(12, 77);
    EXPECT_EQ(upload.Next(12, 77).SerializeAsString(), chunk.SerializeAsString()) << "a repeat";
    EXPECT_EQ(chunk.node_id(), 12u);
    EXPECT_EQ(chunk.job(), 77u);
    EXPECT_EQ(chunk.sequence(), sequence);
    EXPECT_EQ(chunk.clock_offset_ns(), -5);
    EXPECT_EQ(chunk.clock_error_ns(), 3u);
    EXPECT_LE(chunk.spans_size(), static_cast<int>(kTraceChunkEvents));
    EXPECT_LT(chunk.ByteSizeLong(), 1u << 20);
    tracks.push_back(chunk.track_name());
    for (const TracedSpan& span : chunk.spans()) EXPECT_EQ(span.block(), seen++);
    upload.Confirm();
  }
  EXPECT_EQ(seen, kEvents);
  EXPECT_EQ(tracks, (std::vector<std::string>{"quiet", "busy", "busy", "busy"}));
}

}  // namespace
}  // namespace tug
