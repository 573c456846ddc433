#ifndef TUG_PROTO_HEARTBEAT_LOOP_H_
#define TUG_PROTO_HEARTBEAT_LOOP_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/trace.h"
#include "proto/control_client.h"

namespace tug {

// A registered node's side of the control service. Servers and workers differ only in what they
// report and what they do with a reply.
struct HeartbeatCallbacks {
  // Adds readiness, state and reports.
  std::function<void(HeartbeatRequest&)> report;
  // A new view, before on_reply of the same reply; once per view.
  std::function<absl::Status(const View&)> on_view;
  // Every reply of a running job. `sent` is the request it answers: what it reported has arrived.
  std::function<void(const HeartbeatReply&, const HeartbeatRequest& sent)> on_reply;
  // Not OK: this node cannot go on. It is reported, the job fails, and the loop ends with it.
  std::function<absl::Status()> failure;
  // What this node records, null while it does not; it outlives the loop. Sent, cut into chunks
  // between beats, when the coordinator asks. None: nothing is recorded.
  std::function<const Trace*()> trace = {};
  // Whether this node wants to leave the job; true from some time on. None: never.
  std::function<bool()> leaving = {};
};

// This process, as it introduces itself: protocol version, host, pid and a random incarnation.
RegisterRequest ThisProcess(NodeKind kind);

// Beats every `config.fault.heartbeat_ms` until the coordinator says DONE, or that this node may
// leave (OK; a line says so), or FAILED (ABORTED, with its reason), or the node fails, or the
// coordinator has not answered for `coordinator_timeout_ms` (UNAVAILABLE). Until then another
// coordinator may take the job up at the same address; reports are made again until one has
// confirmed them. Blocks.
absl::Status BeatUntilEnd(ControlClient& client, const RegisterReply& registered,
                          const HeartbeatCallbacks& callbacks);

}  // namespace tug

#endif  // TUG_PROTO_HEARTBEAT_LOOP_H_
