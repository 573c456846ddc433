#ifndef TUG_MODEL_STREAM_SPANS_H_
#define TUG_MODEL_STREAM_SPANS_H_

// When a GPU was at work on what is queued on a stream, span by span, for the timeline of a job
// (base/trace.h): by events around it, so that queueing is not taken for computing. The GPU's clock
// is set beside the host's by an event whose time both know.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/trace.h"
#include "kernels/device.h"

namespace tug {

//   spans.Announce(track, {.kind = TraceKind::kForward, .block = b, .clock = c});
//   spans.Begin();  ... queue the pass ...  spans.End();
//   spans.Collect();  // now and then
//
// A span begins when the stream gets there with all before it done, waits for other streams among
// that, and ends when what was queued up to End is done; a GPU that waits for the host meanwhile
// counts as working. Spans do not overlap. To a few microseconds when the clocks have just been set
// (Begin); from there on they drift apart. Owned by one thread.
class StreamSpans {
 public:
  // REQUIRES: `stream` outlives this.
  explicit StreamSpans(const kernels::cuda::Stream& stream) : stream_(stream) {}

  // The next span, as `about` says but for its times; goes to `track`, which lives until it is
  // collected, if that wants its clock. Without it Begin and End do nothing.
  void Announce(TraceTrack& track, const TraceEvent& about);
  // Sets the clocks, and for that waits for the stream, the first time and whenever they were set
  // over two seconds ago and all spans so far are collected.
  absl::Status Begin();
  absl::Status End();
  // Records those that are done, in order. Does not wait.
  absl::Status Collect();

 private:
  struct Span {
    TraceTrack* track = nullptr;
    TraceEvent about = {};
    kernels::cuda::Event begin, end;  // for kTime
  };

  // Of the next span. REQUIRES: none is queued.
  absl::Status SetClock();

  const kernels::cuda::Stream& stream_;
  std::optional<kernels::cuda::Event> origin_;
  int64_t origin_ns_ = 0;  // the same by the tracks' clock
  int64_t last_ns_ = 0;    // the end of the last span
  TraceTrack* announced_ = nullptr;
  TraceEvent about_;          // announced
  std::optional<Span> open_;  // begun
  std::deque<Span> queued_;
  std::vector<Span> kept_;  // their events are used again
};

}  // namespace tug

#endif  // TUG_MODEL_STREAM_SPANS_H_
