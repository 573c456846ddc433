// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_JOB_TRACING_H_
#define TUG_COORDINATOR_MEMBERSHIP_JOB_TRACING_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/trace.h"
#include "blocks/job_blocks.h"
#include "coordinator/membership/actions.h"
#include "coordinator/membership/job_stage.h"
#include "coordinator/membership/membership.h"
#include "coordinator/progress/trace_collector.h"

namespace tug {

// Requests the recordings of a traced job's nodes once the traced steps are over. Emits the trace
// when all are complete, or what has arrived kPatience after the newest chunk. Not thread-safe.
class JobTracing {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(30);

  // `traced`: clocks; empty without tracing. REQUIRES: the other arguments outlive this object.
  JobTracing(const TraceRange& traced, const JobBlocks& blocks, const JobStage& stage,
             const Membership& membership, ActionQueue& actions)
      : traced_(traced),
        blocks_(blocks),
        stage_(stage),
        membership_(membership),
        actions_(actions),
        done_(traced.end == 0) {}

  // Recordings are no longer requested, or never were.
  bool done() const { return done_; }
  // Whether nodes should send their recordings. `step`: completed steps of the job.
  bool IsWanted(uint64_t step) const;
  // REQUIRES: IsWanted. Errors: those of TraceCollector::Add.
  absl::Status Add(const TraceChunk& chunk, Member& sender, absl::Time now);
  // Ends the collection once all members have sent theirs. Call on each change.
  void Advance(uint64_t step, absl::Time now);
  // Whether kPatience has passed since the newest chunk and recordings are still missing.
  bool IsOverdue(uint64_t step, absl::Time now) const {
    return IsWanted(step) && heard_.has_value() && now - *heard_ >= kPatience;
  }
  // Emits TraceCompleted with what has arrived, once.
  void End();
  // Ends without a trace: chunks were lost, or the traced steps are repeated.
  void GiveUp() {
    done_ = true;
    traces_.Take();
  }

 private:
  const TraceRange traced_;
  const JobBlocks& blocks_;
  const JobStage& stage_;
  const Membership& membership_;
  ActionQueue& actions_;
  TraceCollector traces_;
  std::optional<absl::Time> heard_;  // newest chunk, or when the first was requested
  bool done_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_JOB_TRACING_H_
