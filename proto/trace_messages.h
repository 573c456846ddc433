#ifndef TUG_PROTO_TRACE_MESSAGES_H_
#define TUG_PROTO_TRACE_MESSAGES_H_

// How what a process recorded (base/trace.h) travels to the coordinator.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock_offset.h"
#include "base/trace.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Events of a chunk at most: some 400 kB.
inline constexpr size_t kTraceChunkEvents = 8192;

// The steps that are asked for, of a run that starts at a version; empty without tracing.
TraceRange TracedClocks(const TraceConfig& config, uint64_t start_version);
// Those to record: one more in front, since its pulls arrive in the first that is asked for.
TraceRange RecordedClocks(const TraceConfig& config, uint64_t start_version);

// Both ways; `offset_ns` is added to the times. None: a kind that this version does not know, or
// times of another age; those of any two events given can be subtracted.
TracedSpan ToMessage(const TraceEvent& event);
std::optional<TraceEvent> FromMessage(const TracedSpan& span, int64_t offset_ns);

// The tracks of a process, chunk by chunk. Each track has one chunk at least, so that it is known.
// Not thread-safe.
class TraceUpload {
 public:
  // What is recorded while it is sent may be sent or not. REQUIRES: `trace` outlives it.
  TraceUpload(const Trace& trace, ClockOffset::Estimate clock);

  bool done() const { return track_ == trace_.track_count(); }
  // The same one until Confirm. REQUIRES: not done().
  TraceChunk Next(uint32_t node_id, uint64_t job) const;
  // It has arrived.
  void Confirm();

 private:
  const Trace& trace_;
  const ClockOffset::Estimate clock_;
  uint32_t sequence_ = 0;
  size_t track_ = 0;
  size_t event_ = 0;  // the first that has not been confirmed
};

}  // namespace tug

#endif  // TUG_PROTO_TRACE_MESSAGES_H_
