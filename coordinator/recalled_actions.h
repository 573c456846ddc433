#ifndef TUG_COORDINATOR_RECALLED_ACTIONS_H_
#define TUG_COORDINATOR_RECALLED_ACTIONS_H_

#include <deque>
#include <optional>
#include <vector>

#include "coordinator/coordinator.h"

namespace tug {

// What a coordinator that takes a job up does about the actions that the replayed journal led to:
// the process before carried them out in order, and may have died in any. A commit, and a
// prediction, is carried out when the journal has its answer; what came after a commit without one
// is left to do, and the commit too, though it may have been carried out. Pure. Not thread-safe.
class RecalledActions {
 public:
  // `actions`: what the machine asked for when it replayed `record`. To be called with all records,
  // in order. Returns the actions that are known to be done by now; of commits, those that
  // succeeded.
  std::vector<Action> Add(const JournalRecord& record, std::vector<Action> actions);
  // What is left to do, in order. The newest best may have been noted: noting it again does no
  // harm.
  std::vector<Action> TakeLeft();

 private:
  void AddTo(std::vector<Action>& done, Action action);

  std::deque<Action> left_;  // the commit that has no answer yet, and what came after it
  std::optional<NewBestAction> newest_best_;
  std::optional<TuningAction> unanswered_;  // StepPredictionWanted
};

}  // namespace tug

#endif  // TUG_COORDINATOR_RECALLED_ACTIONS_H_
