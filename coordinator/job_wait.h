#ifndef TUG_COORDINATOR_JOB_WAIT_H_
#define TUG_COORDINATOR_JOB_WAIT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace tug {

// Why a job makes no progress, for people; nothing is decided by it.
struct WaitReason {
  enum class Kind { kMembers, kReady, kView, kCommit, kEnd, kStep };
  Kind kind = Kind::kMembers;
  std::string what;  // "1 server to join"
  std::string ends;  // what ends the wait
};

// For how long a job has waited for the same kind of thing, and whether its steps have stalled.
// Pure. Not thread-safe.
class WaitWatch {
 public:
  // `stall_patience`: a step that takes longer than this, and than kSlowSteps times the usual step
  // time, has stalled.
  explicit WaitWatch(absl::Duration stall_patience) : stall_patience_(stall_patience) {}

  static constexpr double kSlowSteps = 10;

  // What the job waits for now; none: for nothing. Its last step, and the usual seconds of one (0:
  // not known).
  void See(const std::optional<WaitReason>& reason, uint64_t step, double step_seconds,
           absl::Time now);
  // What it waited for when this was asked last, and since when; none: nothing.
  const std::optional<WaitReason>& reason() const { return reason_; }
  absl::Time since() const { return since_; }

 private:
  const absl::Duration stall_patience_;
  std::optional<WaitReason> reason_;
  absl::Time since_;
  uint64_t step_ = 0;
  std::optional<absl::Time> step_since_;  // of `step_`; none: it may not be counted yet
};

}  // namespace tug

#endif  // TUG_COORDINATOR_JOB_WAIT_H_
