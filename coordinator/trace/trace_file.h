// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_TRACE_TRACE_FILE_H_
#define TUG_COORDINATOR_TRACE_TRACE_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/progress/trace_collector.h"
#include "coordinator/trace/critical_path.h"
#include "coordinator/trace/trace_figures.h"

namespace tug {

// Writes a trace as JSON for ui.perfetto.dev and chrome://tracing, atomically: to a temporary file
// next to `path`, then renamed. Format: Google, "Trace Event Format" (2016).
//   traceEvents  M: names of nodes (pid = node id) and of their tracks and rows (tid,
//                trace_layout.h); X: spans, named "forward h.3", whose arguments name the worker,
//                or the server and its lane, at the other end; s, t, f: arrows. Times in
//                microseconds since the first event, in the coordinator's clock.
//   steps        one object per worker and step (trace_figures.h): node (name), step (1-based),
//   seconds,
//                compute_seconds, exposed_seconds, communication_seconds, overlap, pushed_bytes,
//                pulled_bytes, queue_seconds by block name
//   critical_path
//                one object per step of the job (critical_path.h): step (1-based), begin_us,
//                seconds, parts: what, who, block, begin_us, us. Also drawn: the first process of
//                the picture, with one row
//   otherData    first_step, last_step; blocks (names, in forward order); clock_error_us by name of
//   the node;
//                events_dropped (buffers were full), spans_left_out (no free row), nodes_missing
// Errors: those of the file system, naming the file.
absl::Status WriteTraceFile(const std::string& path, const JobTrace& trace,
                            const std::vector<StepFigures>& figures,
                            const std::vector<StepPath>& paths);

// A JSON string literal. Bytes that are not UTF-8 become U+FFFD.
std::string JsonString(std::string_view text);

}  // namespace tug

#endif  // TUG_COORDINATOR_TRACE_TRACE_FILE_H_
