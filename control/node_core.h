// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONTROL_NODE_CORE_H_
#define TUG_CONTROL_NODE_CORE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/own_pauses.h"

namespace tug {

class HeartbeatReply;
class HeartbeatRequest;
class RegisterReply;

// State machines of a node's side of the control protocol, without calls, clocks or threads. The
// processes bind them in join_job.h and heartbeat_loop.h, lab/simulate/ in virtual time.

// How long a joining node looks for a coordinator.
inline constexpr absl::Duration kJoinTimeout = absl::Seconds(8);

// A node that asks to join a job. Not thread-safe.
class JoinCore {
 public:
  enum class Next : uint8_t { kAskAgain, kJoined, kNotNeeded, kFail };

  // `timeout`: limit without a reply.
  JoinCore(absl::Duration timeout, absl::Time now) : timeout_(timeout), answered_(now) {}

  // ABORTED: the job is full, and the node to replace may be gone but not yet declared lost:
  // kAskAgain. OUT_OF_RANGE: the job is done: kNotNeeded, since a supervisor must not take that for
  // a failure.
  Next OnReply(const absl::Status& reply, absl::Time now);
  // Whether the job has been full.
  bool waits() const { return waits_; }

 private:
  const absl::Duration timeout_;
  absl::Time answered_;
  bool waits_ = false;
};

// Heartbeats of a node that has joined. Not thread-safe.
class BeatCore {
 public:
  // Event to log for the user.
  enum class Event : uint8_t { kNone, kSilence, kGaveUp, kLeft };
  struct Verdict {
    std::optional<absl::Status> end = {};  // end the node with this status; empty: continue
    bool running = false;                  // the reply is from a running job and must be handled
    bool answers_again = false;            // first reply after a logged silence
    Event event = Event::kNone;
  };

  // `longest_call`: of a heartbeat, whether or not it gets a reply.
  BeatCore(const RegisterReply& registered, absl::Duration longest_call, absl::Time now);

  // To send a heartbeat: Begin, add the reports, Complete. `failure`: not OK if this node cannot
  // continue.
  HeartbeatRequest Begin() const;
  void Complete(bool wants_to_leave, const absl::Status& failure, HeartbeatRequest& beat);
  // Handles the reply to the last heartbeat. UNAVAILABLE and DEADLINE_EXCEEDED mean no reply;
  // another coordinator may recover the job.
  Verdict OnReply(const absl::StatusOr<HeartbeatReply>& reply, absl::Time now);
  // Whether the reply has a view that the node does not know yet; marks it as known.
  bool TakesView(const HeartbeatReply& reply);

  uint32_t node_id() const { return node_id_; }
  uint64_t job() const { return job_; }
  absl::Duration interval() const { return interval_; }
  // How long the coordinator may be silent.
  absl::Duration patience() const { return patience_; }

 private:
  Verdict OnAnswer(const HeartbeatReply& reply);
  Verdict OnSilence(absl::Duration silence);

  const uint32_t node_id_;
  const uint64_t job_;
  const absl::Duration interval_;
  const absl::Duration tell_patience_;  // how long to try to report a failure of this node
  const absl::Duration patience_;
  OwnPauses own_pauses_;
  absl::Time answered_;        // last acknowledged heartbeat, later by own pauses
  bool silence_told_ = false;  // the silence was logged
  absl::Status failure_;
  uint32_t known_view_ = 0;
};

}  // namespace tug

#endif  // TUG_CONTROL_NODE_CORE_H_
