// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_CHECKPOINTS_JOB_CHECKPOINTS_H_
#define TUG_COORDINATOR_CHECKPOINTS_JOB_CHECKPOINTS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/checkpoints/checkpoint_collector.h"
#include "coordinator/checkpoints/failed_checkpoints.h"
#include "coordinator/membership/actions.h"
#include "coordinator/membership/coordinator_options.h"
#include "coordinator/membership/job_stage.h"
#include "coordinator/membership/view_change.h"
#include "coordinator/progress/best_tracker.h"
#include "coordinator/progress/timeline.h"

namespace tug {

// Checkpoints of a job: collects the parts that lanes and workers write, requests commits one at a
// time, handles failed ones, and tracks the newest and the best. Not thread-safe.
class JobCheckpoints {
 public:
  // REQUIRES: all arguments outlive this object.
  JobCheckpoints(const CoordinatorOptions& options, const JobBlocks& blocks, const JobStage& stage,
                 const ViewChange& places, ActionQueue& actions);

  // REQUIRES: `timeline` outlives the next call. Complete checkpoints are still committed.
  void BeginTimeline(const Timeline& timeline);
  // Enters a view with another placement of segments.
  void SetPlacement(const View& view);
  // Sets the assigned virtual workers: `carried[v]` tells whether checkpoints wait for the residual
  // of virtual worker v.
  void SetCarried(std::vector<bool> carried);
  // Completes checkpoints that miss only residuals, without them.
  void GiveUpResiduals() { SetCarried({}); }
  bool AwaitsResiduals() const { return collector_->AwaitsResiduals(); }
  // Another worker resumes the virtual worker at this clock.
  void OnMoved(uint32_t virtual_worker, uint64_t clock) {
    collector_->OnMoved(virtual_worker, clock);
  }

  // Whether a part, written or failed, would have an effect. REQUIRES: a view was issued.
  bool IsWanted(const Member& member, const CheckpointPart& part) const;
  // Adds the parts of a heartbeat. Returns why the job must fail, or "". Call GiveUpResiduals once
  // the job has failed.
  std::string AddParts(const Member& member, const HeartbeatRequest& request);
  // Reports the result of a CommitCheckpointAction. Returns as AddParts.
  std::string OnCommitted(uint64_t version, const absl::Status& status);
  // Returns as AddParts: not empty if the job's last checkpoint is known and has failed.
  std::string WhyLastFailed() const;
  void AddEval(const EvalMetrics& eval);

  // Start of the next timeline, except for `number`.
  const TimelineStart& newest() const { return newest_; }
  // Newest committed checkpoint; 0: none.
  uint64_t committed_version() const { return newest_.version; }
  // Whether the checkpoint of the last step is committed.
  bool AllIsSaved() const { return committed_version() >= timeline_->LastStep(); }
  // Version of the requested commit without a result yet.
  std::optional<uint64_t> committing() const;
  // Whether no commit is requested or queued.
  bool idle() const { return !committing_.has_value() && waiting_.empty(); }
  // Whether a checkpoint of this version may exist: committed, requested, queued, or committed with
  // an error.
  bool MayExist(uint64_t version) const;

 private:
  bool PartIsWanted(const Member& member, const CheckpointPart& part) const;
  bool FailureMatters(const Member& member, const CheckpointPart& failed) const;
  // Returns as AddParts. The job continues unless this is its last checkpoint or too many failed in
  // a row.
  std::string OnFailed(uint64_t version, const std::string& why);
  CommitCheckpointAction CommitOf(const CollectedCheckpoint& whole) const;
  void AddWhole(const std::vector<CollectedCheckpoint>& whole);
  void SkipCommits();
  // Requests the next queued commit, unless one is in progress.
  void Release();
  void TakeBest(const std::optional<BestCheckpoint>& best);

  const CoordinatorOptions& options_;
  const JobBlocks& blocks_;
  const JobStage& stage_;
  const ViewChange& places_;
  ActionQueue& actions_;
  const Timeline* timeline_ = nullptr;
  std::optional<CheckpointCollector> collector_;  // created with the timeline
  FailedCheckpoints failed_;                      // of this timeline
  BestTracker best_;
  TimelineStart newest_;
  std::optional<TimelineStart> committing_;
  std::deque<CommitCheckpointAction> waiting_;  // complete, in order; `held` is set when requested
};

}  // namespace tug

#endif  // TUG_COORDINATOR_CHECKPOINTS_JOB_CHECKPOINTS_H_
