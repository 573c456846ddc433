// SPDX-License-Identifier: Apache-2.0
#include "base/trace.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr TraceRange kRange{.first = 10, .end = 12};

TEST(TraceTrack, RecordsOnlyTheClocksThatAreWanted) {
  const SimulatedTime time;
  TraceTrack track("compute", kRange, 8, time);
  for (uint64_t clock = 8; clock < 14; ++clock) track.Add({.clock = clock});
  ASSERT_EQ(track.events().size(), 2u);
  EXPECT_EQ(track.events()[0].clock, 10u);
  EXPECT_EQ(track.events()[1].clock, 11u);
  EXPECT_EQ(track.dropped(), 0u);
}

TEST(TraceTrack, CountsWhatDoesNotFit) {
  const SimulatedTime time;
  TraceTrack track("compute", kRange, 3, time);
  for (uint32_t block = 0; block < 5; ++block) track.Add({.block = block, .clock = 10});
  track.Add({.clock = 12});  // outside the range, so not counted as dropped
  ASSERT_EQ(track.events().size(), 3u);
  EXPECT_EQ(track.events()[2].block, 2u);
  EXPECT_EQ(track.dropped(), 2u);
}

TEST(TraceSpan, TakesTheTimeOfItsLifeFromTheSource) {
  SimulatedTime time;
  Trace trace(kRange, time);
  TraceTrack* track = trace.AddTrack("lane 0");
  time.RunUntil(absl::UnixEpoch() + absl::Nanoseconds(70));
  {
    const TraceSpan span(track, {.kind = TraceKind::kSum, .block = 3, .clock = 11});
    time.RunUntil(absl::UnixEpoch() + absl::Nanoseconds(95));
  }
  ASSERT_EQ(trace.track_count(), 1u);
  const TraceEvent expected{
      .kind = TraceKind::kSum, .block = 3, .clock = 11, .begin_ns = 70, .end_ns = 95};
  ASSERT_EQ(trace.track(0).events().size(), 1u);
  EXPECT_EQ(trace.track(0).events()[0], expected);
}

TEST(TraceSpan, WithoutATrackDoesNothing) {
  const TraceSpan span(nullptr, {.kind = TraceKind::kSum});
}

TEST(TraceTrack, IsReadWholeWhileMoreIsRecorded) {
  constexpr uint32_t kEvents = 20'000;
  const RealTime time;
  TraceTrack track("compute", kRange, kEvents, time);
  std::thread recorder([&] {
    for (uint32_t i = 0; i < kEvents; ++i) track.Add({.block = i, .clock = 10, .bytes = i});
  });
  size_t seen = 0;
  while (seen < kEvents) {
    const std::span<const TraceEvent> events = track.events();
    for (; seen < events.size(); ++seen) {
      ASSERT_EQ(events[seen].block, seen);
      ASSERT_EQ(events[seen].bytes, seen);
    }
  }
  recorder.join();
}

TEST(TraceKinds, HaveANameEach) {
  for (const char* name : kTraceKindNames) EXPECT_NE(std::string(name), "");
}

}  // namespace
}  // namespace tug
