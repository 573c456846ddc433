// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONTROL_TRACE_MESSAGES_H_
#define TUG_CONTROL_TRACE_MESSAGES_H_

// Conversion of a process's trace (base/trace.h) to messages for the coordinator.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock_offset.h"
#include "base/trace.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Limit of events per chunk: some 400 kB.
inline constexpr size_t kTraceChunkEvents = 8192;

// Clocks to trace of a run that starts at a version; empty without tracing.
TraceRange TracedClocks(const TraceConfig& config, uint64_t start_version);
// Clocks to record: TracedClocks and the one before, during which the pulls of the first arrive.
TraceRange RecordedClocks(const TraceConfig& config, uint64_t start_version);

// Convert both ways; `offset_ns` is added to the times. Nothing if the kind is unknown to this
// version, or the times are decades away from ours; the times of any two returned events can be
// subtracted without overflow.
TracedSpan ToMessage(const TraceEvent& event);
std::optional<TraceEvent> FromMessage(const TracedSpan& span, int64_t offset_ns);

// Sends the tracks of a process in chunks. Each track has at least one chunk, so that the
// coordinator knows it. Not thread-safe.
class TraceUpload {
 public:
  // Events recorded during the upload may or may not be included. REQUIRES: `trace` outlives it.
  TraceUpload(const Trace& trace, ClockOffset::Estimate clock);

  bool done() const { return track_ == trace_.track_count(); }
  // Returns the same chunk until Confirm. REQUIRES: not done().
  TraceChunk Next(uint32_t node_id, uint64_t job) const;
  // The chunk has arrived.
  void Confirm();

 private:
  const Trace& trace_;
  const ClockOffset::Estimate clock_;
  uint32_t sequence_ = 0;
  size_t track_ = 0;
  size_t event_ = 0;  // first unconfirmed event
};

}  // namespace tug

#endif  // TUG_CONTROL_TRACE_MESSAGES_H_
