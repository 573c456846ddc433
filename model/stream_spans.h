#ifndef TUG_MODEL_STREAM_SPANS_H_
#define TUG_MODEL_STREAM_SPANS_H_

// When a GPU was at work on what is queued on a stream, span by span, for the timeline of a job
// (base/trace.h): by events around it, so that queueing is not taken for computing. The GPU's clock
// is set beside the host's once, by an event whose time both know.

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
// counts as working. To a few microseconds. Owned by one thread.
class StreamSpans {
 public:
  // REQUIRES: `stream` outlives this.
  explicit StreamSpans(const kernels::cuda::Stream& stream) : stream_(stream) {}

  // The next span, as `about` says but for its times; goes to `track`, which lives until it is
  // collected, if that wants its clock. Without it Begin and End do nothing.
  void Announce(TraceTrack& track, const TraceEvent& about);
  // The first time it waits for the stream.
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

  absl::Status SetClock();

  const kernels::cuda::Stream& stream_;
  std::optional<kernels::cuda::Event> origin_;
  int64_t origin_ns_ = 0;  // the same by the tracks' clock
  TraceTrack* announced_ = nullptr;
  TraceEvent about_;          // announced
  std::optional<Span> open_;  // begun
  std::deque<Span> queued_;
  std::vector<Span> kept_;  // their events are used again
};

}  // namespace tug

#endif  // TUG_MODEL_STREAM_SPANS_H_
