#ifndef TUG_COORDINATOR_TRACE_FILE_H_
#define TUG_COORDINATOR_TRACE_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/critical_path.h"
#include "coordinator/trace_collector.h"
#include "coordinator/trace_figures.h"

namespace tug {

// Writes a trace as JSON for ui.perfetto.dev and chrome://tracing, whole or not at all: to a file
// beside it, then renamed. Format: Google, "Trace Event Format" (2016).
//   traceEvents  M: names of nodes (pid = node id) and of their tracks and rows (tid,
//                trace_layout.h); X: spans, named "forward h.3"; s, t, f: arrows. Times in
//                microseconds since the first event, by the coordinator's clock.
//   steps        an object for each worker and step (trace_figures.h): node, step (1-based),
//                seconds, compute_seconds, exposed_seconds, communication_seconds, overlap,
//                pushed_bytes, pulled_bytes, queue_seconds by name of block
//   critical_path
//                an object for each step of the job (critical_path.h): step (1-based), begin_us,
//                seconds, parts: what, who, block, begin_us, us. It is drawn too: the first process
//                of the picture, with one row
//   otherData    first_step, last_step; blocks (names, in forward order); clock_error_us by node;
//                events_dropped (buffers were full), spans_left_out (no row was free),
//                nodes_missing
// Errors: those of the file system, naming the file.
absl::Status WriteTraceFile(const std::string& path, const JobTrace& trace,
                            const std::vector<StepFigures>& figures,
                            const std::vector<StepPath>& paths);

// A string as JSON writes it, in quotes. Bytes that are not UTF-8 become U+FFFD.
std::string JsonString(std::string_view text);

}  // namespace tug

#endif  // TUG_COORDINATOR_TRACE_FILE_H_
