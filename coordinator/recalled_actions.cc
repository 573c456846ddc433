// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recalled_actions.h"

#include <utility>
#include <variant>

namespace tug {

std::vector<Action> RecalledActions::Add(const JournalRecord& record, std::vector<Action> actions) {
  std::vector<Action> done;
  if (record.has_predicted()) unanswered_.reset();
  if (record.has_committed() && !left_.empty()) {
    std::deque<Action> left = std::exchange(left_, {});
    if (record.committed().code() == 0) done.push_back(std::move(left.front()));
    left.pop_front();
    for (Action& action : left) AddTo(done, std::move(action));
  }
  for (Action& action : actions) AddTo(done, std::move(action));
  return done;
}

void RecalledActions::AddTo(std::vector<Action>& done, Action action) {
  if (!left_.empty() || std::holds_alternative<CommitCheckpointAction>(action)) {
    left_.push_back(std::move(action));
  } else if (auto* const best = std::get_if<NewBestAction>(&action)) {
    newest_best_ = std::move(*best);
  } else if (auto* const tuning = std::get_if<TuningAction>(&action);
             tuning != nullptr && std::holds_alternative<StepPredictionWanted>(tuning->event)) {
    unanswered_ = std::move(*tuning);
  } else {
    done.push_back(std::move(action));
  }
}

std::vector<Action> RecalledActions::TakeLeft() {
  std::vector<Action> left;
  if (newest_best_.has_value()) left.emplace_back(*std::exchange(newest_best_, std::nullopt));
  for (Action& action : std::exchange(left_, {})) left.push_back(std::move(action));
  if (unanswered_.has_value()) left.emplace_back(*std::exchange(unanswered_, std::nullopt));
  return left;
}

}  // namespace tug
