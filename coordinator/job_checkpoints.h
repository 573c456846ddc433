#ifndef TUG_COORDINATOR_JOB_CHECKPOINTS_H_
#define TUG_COORDINATOR_JOB_CHECKPOINTS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/actions.h"
#include "coordinator/best_tracker.h"
#include "coordinator/checkpoint_collector.h"
#include "coordinator/coordinator_options.h"
#include "coordinator/failed_checkpoints.h"
#include "coordinator/job_stage.h"
#include "coordinator/timeline.h"
#include "coordinator/view_change.h"

namespace tug {

// Checkpoints of a job, from the parts that lanes and workers write to the commits, one at a time;
// what becomes of those that fail; and which are the newest and the best. Not thread-safe.
class JobCheckpoints {
 public:
  // All outlive it.
  JobCheckpoints(const CoordinatorOptions& options, const JobBlocks& blocks, const JobStage& stage,
                 const ViewChange& places, ActionQueue& actions);

  // `timeline` outlives the next call. What is whole is committed still.
  void BeginTimeline(const Timeline& timeline);
  // Segments are placed otherwise from now on.
  void SetPlacement(const View& view);
  // Other workers carry virtual workers, or somebody has gone: by virtual worker, whether a
  // checkpoint waits for its residual.
  void SetCarried(std::vector<bool> carried);
  // Checkpoints that lack nothing else are whole without what workers have not written yet.
  void GiveUpResiduals() { SetCarried({}); }
  bool AwaitsResiduals() const { return collector_->AwaitsResiduals(); }
  // Another worker goes on with the virtual worker at this clock.
  void OnMoved(uint32_t virtual_worker, uint64_t clock) {
    collector_->OnMoved(virtual_worker, clock);
  }

  // Whether a part that was written, or was not, makes a difference. REQUIRES: there is a view.
  bool IsWanted(const Member& member, const CheckpointPart& part) const;
  // Why the job cannot go on; empty: it can. Once it has failed, GiveUpResiduals is to be called.
  std::string AddParts(const Member& member, const HeartbeatRequest& request);
  // Answers a CommitCheckpointAction. As AddParts.
  std::string OnCommitted(uint64_t version, const absl::Status& status);
  // As AddParts: the job's last checkpoint is known, and it is one that has failed.
  std::string WhyLastFailed() const;
  void AddEval(const EvalMetrics& eval);

  // Where the next timeline would begin; `number` says nothing.
  const TimelineStart& newest() const { return newest_; }
  // Newest usable checkpoint; 0 = none.
  uint64_t committed_version() const { return newest_.version; }
  // The checkpoint of the last step is committed.
  bool AllIsSaved() const { return committed_version() >= timeline_->LastStep(); }
  // Of the commit that was asked for and is not answered.
  std::optional<uint64_t> committing() const;
  // No commit is asked for, or about to be.
  bool idle() const { return !committing_.has_value() && waiting_.empty(); }
  // Whether a checkpoint of this version may be there: committed, or asked for, or about to be, or
  // committed with an error.
  bool MayExist(uint64_t version) const;

 private:
  bool PartIsWanted(const Member& member, const CheckpointPart& part) const;
  bool FailureMatters(const Member& member, const CheckpointPart& failed) const;
  // As AddParts. The job goes on without this one, unless it is the last or one too many in a row.
  std::string OnFailed(uint64_t version, const std::string& why);
  CommitCheckpointAction CommitOf(const CollectedCheckpoint& whole) const;
  void AddWhole(const std::vector<CollectedCheckpoint>& whole);
  void SkipCommits();
  // Asks for the next commit, if none is being carried out.
  void Release();
  void TakeBest(const std::optional<BestCheckpoint>& best);

  const CoordinatorOptions& options_;
  const JobBlocks& blocks_;
  const JobStage& stage_;
  const ViewChange& places_;
  ActionQueue& actions_;
  const Timeline* timeline_ = nullptr;
  std::optional<CheckpointCollector> collector_;  // with the timeline
  FailedCheckpoints failed_;                      // of the timeline
  BestTracker best_;
  TimelineStart newest_;
  std::optional<TimelineStart> committing_;
  std::deque<CommitCheckpointAction> waiting_;  // whole, in order; `held` comes last
};

}  // namespace tug

#endif  // TUG_COORDINATOR_JOB_CHECKPOINTS_H_
