// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_JOB_STAGE_H_
#define TUG_COORDINATOR_MEMBERSHIP_JOB_STAGE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "coordinator/membership/membership.h"

namespace tug {

// Stage of a job: waiting for nodes, running, rolling back to a checkpoint, or ended; and since
// when it has been in one of the last two. Pure. Not thread-safe.
class JobStage {
 public:
  Phase phase() const { return phase_; }
  bool ended() const { return phase_ == DONE || phase_ == FAILED; }
  // The timeline has ended; the next one waits for members.
  bool rolling_back() const { return rolling_back_; }
  // The timeline is training or ending.
  bool running() const { return phase_ == RUNNING && !rolling_back_; }
  // Number of rollbacks that repeat completed steps.
  uint32_t rollbacks() const { return rollbacks_; }
  // Failure reason; empty: not failed.
  const std::string& failure() const { return failure_; }
  // Whether JobEnded was emitted.
  bool end_reported() const { return end_reported_; }
  // REQUIRES: ended() or rolling_back().
  absl::Duration Lasts(absl::Time now) const { return now - since_; }

  void Go() { phase_ = RUNNING; }
  // `loses_steps`: not all steps are saved in a checkpoint.
  void RollBack(bool loses_steps, absl::Time now) {
    rolling_back_ = true;
    since_ = now;
    if (!loses_steps) return;
    ++rollbacks_;
    phase_ = WAITING;
  }
  void BeginTimeline() { rolling_back_ = false; }
  void Finish(absl::Time now) {
    phase_ = DONE;
    since_ = now;
  }
  void Fail(std::string why, absl::Time now) {
    phase_ = FAILED;
    since_ = now;
    failure_ = std::move(why);
  }
  void ReportEnd() { end_reported_ = true; }

  // Excludes a pause of this process from Lasts(). CountFrom restarts it.
  void ForgivePause(absl::Duration pause, absl::Time now) {
    since_ = std::min(now, since_ + pause);
  }
  void CountFrom(absl::Time now) { since_ = now; }

 private:
  Phase phase_ = WAITING;
  bool rolling_back_ = false;
  uint32_t rollbacks_ = 0;
  std::string failure_;
  absl::Time since_;
  bool end_reported_ = false;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_JOB_STAGE_H_
