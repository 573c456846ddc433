// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONTROL_HEARTBEAT_LOOP_H_
#define TUG_CONTROL_HEARTBEAT_LOOP_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/leave_signal.h"
#include "base/trace.h"
#include "control/control_client.h"

namespace tug {

// Callbacks of a registered node's heartbeat loop. Servers and workers differ only in their reports
// and in their handling of replies.
struct HeartbeatCallbacks {
  // Adds readiness, state and reports to the request.
  std::function<void(HeartbeatRequest&)> report;
  // Called with a new view, before on_reply of the same reply; once per view.
  std::function<absl::Status(const View&)> on_view;
  // Called with every reply of a running job. `sent` is the request it answers, so its reports have
  // arrived.
  std::function<void(const HeartbeatReply&, const HeartbeatRequest& sent)> on_reply;
  // Not OK: this node cannot continue. The error is reported, the job fails, and the loop returns
  // it.
  std::function<absl::Status()> failure;
  // Current trace of this node, null while it does not record; the trace outlives the loop. It is
  // sent in chunks between heartbeats when the coordinator asks for it. Empty: nothing is recorded.
  std::function<const Trace*()> trace = {};
  // Whether this node wants to leave the job; once true, it stays true. Empty: never.
  std::function<bool()> leaving = {};
};

// Arms a daemon's signal once its node has joined: the node leaves if the job can continue without
// it, and else waits for the end of the job. Null: no signal.
void ArmLeaveSignal(LeaveSignal* leave, const JobConfig& config);

// Describes this process for Register: protocol version, host, pid and a random incarnation.
RegisterRequest ThisProcess(NodeKind kind);

// Sends a heartbeat every `config.fault.heartbeat_ms` until the job or this node ends. Returns OK
// when the coordinator reports DONE or lets this node leave (which is logged); ABORTED when it
// reports FAILED (with its reason), or lets this node leave and waits for a replacement; the node's
// own failure; the coordinator's error; UNAVAILABLE when it has not replied for
// `coordinator_timeout_ms`. During that time a recovered coordinator may take over at the same
// address; reports are repeated until one is acknowledged. Blocks.
absl::Status BeatUntilEnd(ControlClient& client, const RegisterReply& registered,
                          const HeartbeatCallbacks& callbacks);

}  // namespace tug

#endif  // TUG_CONTROL_HEARTBEAT_LOOP_H_
