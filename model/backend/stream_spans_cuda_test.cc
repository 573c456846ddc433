// SPDX-License-Identifier: Apache-2.0
#include "model/backend/stream_spans.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "absl/time/time.h"
#include "base/check.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "kernels/cuda/device/cuda_test_support.h"

namespace tug {
namespace {

using StreamSpansCuda = kernels::cuda::CudaTest;

// Far longer than the test takes in real time.
constexpr int64_t kHourNs = int64_t{3600} * 1'000'000'000;

void QueueSpan(StreamSpans& spans, TraceTrack& track, uint32_t block) {
  spans.Announce(track, {.kind = TraceKind::kForward, .block = block});
  TUG_CHECK_OK(spans.Begin());
  TUG_CHECK_OK(spans.End());
}

// The host's clock advances an hour relative to the GPU's.
TEST_F(StreamSpansCuda, SetsTheClocksAgainWhenNothingIsQueued) {
  SimulatedTime time;
  TraceTrack track("device", {.first = 0, .end = 1}, 100, time);
  StreamSpans spans(stream());
  const auto collect = [&] {
    ASSERT_TRUE(stream().Synchronize().ok());
    ASSERT_TRUE(spans.Collect().ok());
  };
  QueueSpan(spans, track, 0);
  collect();
  ASSERT_EQ(track.events().size(), 1u);
  EXPECT_LT(track.events()[0].end_ns, kHourNs / 2);

  time.RunUntil(time.Now() + absl::Hours(1));
  QueueSpan(spans, track, 1);
  time.RunUntil(time.Now() + absl::Hours(1));
  QueueSpan(spans, track, 2);
  collect();
  ASSERT_EQ(track.events().size(), 3u);
  for (const size_t i : {1u, 2u}) {
    EXPECT_GE(track.events()[i].begin_ns, kHourNs) << i;
    EXPECT_LT(track.events()[i].end_ns, kHourNs * 3 / 2) << i << ": one before it is queued";
  }
}

}  // namespace
}  // namespace tug
