// SPDX-License-Identifier: Apache-2.0
// Trace events of a lane.
#include <span>
#include <vector>

#include "base/time_source.h"
#include "server/shard/shard_test_support.h"

namespace tug {
namespace {

constexpr uint64_t kBytes = 2 * kSegment * sizeof(float);

// Constructed before the shard that records in it.
struct Recorder {
  SimulatedTime time;
  TraceTrack track{"lane 0", {.first = 1, .end = 2}, 100, time};
};

class ShardTraceTest : private Recorder, public ShardTest {
 protected:
  ShardTraceTest() : ShardTest(Traced(&this->track)) {}
  static ShardOptions Traced(TraceTrack* track) {
    ShardOptions options = Options(OptimizerConfig::OFF);
    options.trace = track;
    return options;
  }
  std::vector<TraceEvent> Recorded() const {
    return {track.events().begin(), track.events().end()};
  }
};

TEST_F(ShardTraceTest, RecordsSumsUpdatesAndAnswersOfTheTracedClock) {
  for (uint64_t clock = 0; clock < 3; ++clock) {
    Push(1, 0, clock);
    Pull(1, clock + 1);
    Push(1, 1, clock);
  }
  const TraceEvent sum{.kind = TraceKind::kSum,
                       .block = 1,
                       .segment_count = 2,
                       .peer = 7,
                       .clock = 1,
                       .bytes = kBytes};
  TraceEvent other_sum = sum;
  other_sum.virtual_worker = 1;
  const TraceEvent update{.kind = TraceKind::kOptimizer,
                          .block = 1,
                          .segment_count = 1,
                          .clock = 1,
                          .bytes = kBytes / 2};
  TraceEvent other_update = update;
  other_update.first_segment = 1;
  const TraceEvent answer{
      .kind = TraceKind::kServe, .block = 1, .segment_count = 2, .peer = 7, .clock = 1};
  EXPECT_EQ(Recorded(), (std::vector<TraceEvent>{sum, other_sum, update, other_update, answer}));
}

class ShardUpdateTraceTest : private Recorder, public ShardTest {
 protected:
  ShardUpdateTraceTest() : ShardTest(Traced(&this->track)) {}
  static ShardOptions Traced(TraceTrack* track) {
    ShardOptions options = Options(OptimizerConfig::OFF);
    options.sync.set_policy(SyncConfig::ASP);
    options.trace = track;
    return options;
  }
  std::span<const TraceEvent> Recorded() const { return track.events(); }
};

TEST_F(ShardUpdateTraceTest, RecordsWhatIsDecodedSegmentBySegment) {
  const std::vector<float> gradient(2 * kSegment, 1.0f);
  for (uint64_t clock = 0; clock < 2; ++clock) {
    DeliverFrames(PushHeader(1, 0, clock), gradient, {kBf16Frame, kFp32Frame});
  }
  std::vector<TraceKind> kinds;
  for (const TraceEvent& event : Recorded()) kinds.push_back(event.kind);
  EXPECT_EQ(kinds, (std::vector<TraceKind>{TraceKind::kDecode, TraceKind::kOptimizer,
                                           TraceKind::kOptimizer}));
  EXPECT_EQ(Recorded()[0].segment_count, 1u);
  EXPECT_EQ(Recorded()[0].bytes, kSegment * sizeof(uint16_t));
}

TEST_F(ShardTraceTest, ARepeatedPushIsNoWork) {
  Push(1, 0, 0);
  Push(1, 1, 0);
  Push(1, 0, 1);
  Push(1, 0, 1);
  EXPECT_EQ(Recorded().size(), 1u);
}

}  // namespace
}  // namespace tug
