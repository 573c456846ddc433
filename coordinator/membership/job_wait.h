// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_JOB_WAIT_H_
#define TUG_COORDINATOR_MEMBERSHIP_JOB_WAIT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace tug {

// Why a job makes no progress; for display only.
struct WaitReason {
  enum class Kind { kMembers, kReady, kView, kCommit, kEnd, kStep };
  Kind kind = Kind::kMembers;
  std::string what;  // "1 server to join"
  std::string ends;  // event that ends the wait
};

// Tracks since when a job has waited for the same kind of event, and whether its steps have
// stalled. Pure. Not thread-safe.
class WaitWatch {
 public:
  // `stall_patience`: a step that takes longer than this, and than kSlowSteps times the usual step
  // time, has stalled.
  explicit WaitWatch(absl::Duration stall_patience) : stall_patience_(stall_patience) {}

  static constexpr double kSlowSteps = 10;

  // Updates the state. `reason`: current wait; none: not waiting. `step`: the last completed step.
  // `step_seconds`: usual time of a step; 0: unknown.
  void See(const std::optional<WaitReason>& reason, uint64_t step, double step_seconds,
           absl::Time now);
  // Wait reason as of the last See, and since when; none: not waiting.
  const std::optional<WaitReason>& reason() const { return reason_; }
  absl::Time since() const { return since_; }

 private:
  const absl::Duration stall_patience_;
  std::optional<WaitReason> reason_;
  absl::Time since_;
  uint64_t step_ = 0;
  std::optional<absl::Time> step_since_;  // start of the current step; none: unknown
};

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_JOB_WAIT_H_
