#ifndef TUG_COORDINATOR_JOB_TRACING_H_
#define TUG_COORDINATOR_JOB_TRACING_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/trace.h"
#include "coordinator/actions.h"
#include "coordinator/job_blocks.h"
#include "coordinator/job_stage.h"
#include "coordinator/membership.h"
#include "coordinator/trace_collector.h"

namespace tug {

// When nodes of a traced job are asked for what they recorded: once its steps are over. Hands it on
// whole, or what has come of it by kPatience after the newest part. Not thread-safe.
class JobTracing {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(30);

  // `traced`: clocks; empty without tracing. The others outlive it.
  JobTracing(const TraceRange& traced, const JobBlocks& blocks, const JobStage& stage,
             const Membership& membership, ActionQueue& actions)
      : traced_(traced),
        blocks_(blocks),
        stage_(stage),
        membership_(membership),
        actions_(actions),
        done_(traced.end == 0) {}

  // Nodes are not asked any more, or never.
  bool done() const { return done_; }
  // Whether nodes are to send what they recorded. `step`: that the job has completed.
  bool IsWanted(uint64_t step) const;
  // REQUIRES: IsWanted. Errors: those of TraceCollector::Add.
  absl::Status Add(const TraceChunk& chunk, Member& sender, absl::Time now);
  // Time passes: ends it once all have sent theirs.
  void Advance(uint64_t step, absl::Time now);
  // Those that have not sent theirs have had kPatience.
  bool IsOverdue(uint64_t step, absl::Time now) const {
    return IsWanted(step) && heard_.has_value() && now - *heard_ >= kPatience;
  }
  // Hands on what has come, once.
  void End();
  // Nothing is handed on: what has come is lost, or its steps are taken again.
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
  std::optional<absl::Time> heard_;  // since when the next part is waited for
  bool done_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_JOB_TRACING_H_
