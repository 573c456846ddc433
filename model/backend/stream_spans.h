// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_BACKEND_STREAM_SPANS_H_
#define TUG_MODEL_BACKEND_STREAM_SPANS_H_

// Spans of time in which a GPU executes the work queued on a stream, for the job's timeline
// (base/trace.h). Measured with events around the work, so queueing does not count as computing.
// The GPU's clock is aligned with the host's by an event whose time both know.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/trace.h"
#include "kernels/cuda/device/device.h"

namespace tug {

//   spans.Announce(track, {.kind = TraceKind::kForward, .block = b, .clock = c});
//   spans.Begin();  ... queue the pass ...  spans.End();
//   spans.Collect();  // now and then
//
// A span begins when the stream reaches it, with all earlier work done, including waits for other
// streams. It ends when the work queued up to End is done; a GPU that waits for the host in between
// counts as busy. Spans do not overlap. Accurate to a few microseconds right after the clocks were
// aligned (Begin); then the clocks drift apart. Owned by one thread.
class StreamSpans {
 public:
  // REQUIRES: `stream` outlives this.
  explicit StreamSpans(const kernels::cuda::Stream& stream) : stream_(stream) {}

  // Announces the next span: `about` without its times. It goes to `track`, if that wants its
  // clock; `track` must live until the span is collected. Without an announcement Begin and End do
  // nothing.
  void Announce(TraceTrack& track, const TraceEvent& about);
  // Aligns the clocks the first time, and when they were aligned more than two seconds ago and all
  // earlier spans are collected. Aligning waits for the stream.
  absl::Status Begin();
  absl::Status End();
  // Records finished spans, in order. Does not wait.
  absl::Status Collect();

 private:
  struct Span {
    TraceTrack* track = nullptr;
    TraceEvent about = {};
    kernels::cuda::Event begin, end;  // with EventUse::kTime
  };

  // Aligns the clocks before the next span. REQUIRES: no span is queued.
  absl::Status SetClock();

  const kernels::cuda::Stream& stream_;
  std::optional<kernels::cuda::Event> origin_;
  int64_t origin_ns_ = 0;  // time of origin_ by the tracks' clock
  int64_t last_ns_ = 0;    // end of the last span
  TraceTrack* announced_ = nullptr;
  TraceEvent about_;          // of the announced span
  std::optional<Span> open_;  // between Begin and End
  std::deque<Span> queued_;
  std::vector<Span> kept_;  // collected spans whose events are reused
};

}  // namespace tug

#endif  // TUG_MODEL_BACKEND_STREAM_SPANS_H_
