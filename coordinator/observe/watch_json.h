// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_WATCH_JSON_H_
#define TUG_COORDINATOR_OBSERVE_WATCH_JSON_H_

#include <string>

#include "coordinator/observe/run_history.h"
#include "proto/control.pb.h"

namespace tug {

// JSON for the live page (coordinator/observe/live_page.html). Numbers that are not finite are
// null, bytes that are not UTF-8 are replaced. Pure, thread-safe.

// /status.json: name, run_dir, phase ("running"), ended, step, steps, loss, replay (name of the
// profile; empty: training), tokens_per_second, unit ("tokens" or "samples"), seconds_left,
// last_checkpoint, failure, stopped_early, view, best ({step, loss} or null), waits_for ({what,
// seconds, ends} or null), late (sentences), all_reduce (AllReduceText; empty: none), and nodes:
// for each id, name, life (above 1: a replacement), role, host, pid, heard_seconds,
// virtual_workers, rank (in the all-reduce, or null), step, step_seconds, compute_seconds,
// wait_seconds, activity (in words), doing (as NodeActivity, lower case), socket_bytes_per_second,
// shared_memory_bytes_per_second, memory_bytes, staleness (null: of a worker, or always 0).
std::string StatusJson(const StatusReply& status);

// /history.json: seq (pass it as the next `since`), reset (true: drop earlier results), points (and
// open, or null): [step, at_seconds, loss, step seconds, tokens per step]; evals: [step, loss,
// final]; events: [at_seconds, step, text]; steps: [step, [[virtual worker, seconds, compute, wait,
// straggle], ...]]; links: [at_seconds, [[node, bytes per second through sockets, through shared
// memory], ...]]; settings: [step, [setting that the resumed run changed, ...]].
std::string HistoryJson(const RunHistory::News& news);

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_WATCH_JSON_H_
