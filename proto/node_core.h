#ifndef TUG_PROTO_NODE_CORE_H_
#define TUG_PROTO_NODE_CORE_H_

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

// What the coordinator's answers mean to a node, as machines without calls, clocks or threads: the
// processes bind them in join_job.h and heartbeat_loop.h, simulate/ in virtual time.

// How long a node that joins looks for a coordinator.
inline constexpr absl::Duration kJoinTimeout = absl::Seconds(8);

// A node that asks to be let into a job. Not thread-safe.
class JoinCore {
 public:
  enum class Next : uint8_t { kAskAgain, kJoined, kNotNeeded, kFail };

  // `timeout`: without an answer.
  JoinCore(absl::Duration timeout, absl::Time now) : timeout_(timeout), answered_(now) {}

  // ABORTED: the job is full, and one whose place is to be taken may be gone without having been
  // missed yet. OUT_OF_RANGE: the job is done; to a supervisor such a node must not look like one
  // that fails.
  Next OnReply(const absl::Status& reply, absl::Time now);
  // Whether the job was full at some time.
  bool waits() const { return waits_; }

 private:
  const absl::Duration timeout_;
  absl::Time answered_;
  bool waits_ = false;
};

// A node that has joined, from one heartbeat to the next. Not thread-safe.
class BeatCore {
 public:
  // What people are to be told.
  enum class Event : uint8_t { kNone, kSilence, kGaveUp, kLeft };
  struct Verdict {
    std::optional<absl::Status> end = {};  // the node ends with this; none: it beats again
    bool running = false;                  // the reply is of a running job: to be taken
    bool answers_again = false;            // after a silence that people were told of
    Event event = Event::kNone;
  };

  // `longest_call`: of a heartbeat, answered or not.
  BeatCore(const RegisterReply& registered, absl::Duration longest_call, absl::Time now);

  // A heartbeat: Begin, what the caller reports, Complete. `failure`: not OK where this node cannot
  // go on.
  HeartbeatRequest Begin() const;
  void Complete(bool wants_to_leave, const absl::Status& failure, HeartbeatRequest& beat);
  // Of the newest beat. UNAVAILABLE and DEADLINE_EXCEEDED: there is no answer, and another
  // coordinator may take the job up.
  Verdict OnReply(const absl::StatusOr<HeartbeatReply>& reply, absl::Time now);
  // Whether the reply has a view that the node does not know yet; from now on it does.
  bool TakesView(const HeartbeatReply& reply);

  uint32_t node_id() const { return node_id_; }
  uint64_t job() const { return job_; }
  absl::Duration interval() const { return interval_; }
  // For the coordinator's silence.
  absl::Duration patience() const { return patience_; }

 private:
  Verdict OnAnswer(const HeartbeatReply& reply);
  Verdict OnSilence(absl::Duration silence);

  const uint32_t node_id_;
  const uint64_t job_;
  const absl::Duration interval_;
  const absl::Duration tell_patience_;  // where this node has failed: to tell so
  const absl::Duration patience_;
  OwnPauses own_pauses_;
  absl::Time answered_;        // the newest heartbeat that was, later by own pauses
  bool silence_told_ = false;  // to people
  absl::Status failure_;
  uint32_t known_view_ = 0;
};

}  // namespace tug

#endif  // TUG_PROTO_NODE_CORE_H_
