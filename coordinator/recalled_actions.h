// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_RECALLED_ACTIONS_H_
#define TUG_COORDINATOR_RECALLED_ACTIONS_H_

#include <deque>
#include <optional>
#include <vector>

#include "coordinator/coordinator.h"

namespace tug {

// Splits the actions that a replayed journal produces into done and left, for a recovered
// coordinator. The previous process executed actions in order and may have died during any of them.
// A commit, or a prediction, is done if the journal has its result. A commit without a result, and
// all actions after it, are left, although the commit may have been executed. Pure. Not
// thread-safe.
class RecalledActions {
 public:
  // `actions`: what the state machine requested on replaying `record`. Call with all records, in
  // order. Returns the actions now known to be done, of commits those that succeeded.
  std::vector<Action> Add(const JournalRecord& record, std::vector<Action> actions);
  // Actions left to do, in order. The newest best is among them though it may have been recorded:
  // recording it again is harmless.
  std::vector<Action> TakeLeft();

 private:
  void AddTo(std::vector<Action>& done, Action action);

  std::deque<Action> left_;  // the commit without a result, and the actions after it
  std::optional<NewBestAction> newest_best_;
  std::optional<TuningAction> unanswered_;  // StepPredictionWanted
};

}  // namespace tug

#endif  // TUG_COORDINATOR_RECALLED_ACTIONS_H_
