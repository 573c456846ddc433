#include "coordinator/job_loop.h"

#include <functional>
#include <utility>
#include <variant>

#include "checkpoint/best_checkpoint.h"
#include "checkpoint/checkpoint.h"

namespace tug {
namespace {

constexpr absl::Duration kLoopTime = absl::Milliseconds(100);

bool IsOf(const FoundCheckpoint& found, const Manifest& manifest) {
  if (found.manifest.version() != manifest.version() ||
      found.manifest.timeline() != manifest.timeline() ||
      found.manifest.files_size() != manifest.files_size()) {
    return false;
  }
  for (int i = 0; i < manifest.files_size(); ++i) {
    if (found.manifest.files(i).name() != manifest.files(i).name() ||
        found.manifest.files(i).xxh3() != manifest.files(i).xxh3()) {
      return false;
    }
  }
  return true;
}

}  // namespace

void JobLoop::Recall(const JournalRecord& record, const std::vector<Action>& actions) {
  if (record.has_predicted()) unanswered_.reset();
  if (record.has_committed() && !left_.empty()) {
    std::deque<Action> left = std::exchange(left_, {});
    const auto& commit = std::get<CommitCheckpointAction>(left.front());
    if (record.committed().code() == 0) {
      reporter_.OnCheckpoint(commit, CheckpointPath(run_dir_, commit.manifest.version()));
    }
    left.pop_front();
    for (const Action& action : left) RecallAction(action);
  }
  for (const Action& action : actions) RecallAction(action);
}

void JobLoop::RecallAction(const Action& action) {
  if (!left_.empty() || std::holds_alternative<CommitCheckpointAction>(action)) {
    left_.push_back(action);
  } else if (const auto* best = std::get_if<NewBestAction>(&action)) {
    newest_best_ = *best;
  } else if (const auto* traced = std::get_if<TraceCompleted>(&action)) {
    reporter_.RecallTrace(traced->trace.range);
  } else if (const auto* tuning = std::get_if<TuningAction>(&action);
             tuning != nullptr && std::holds_alternative<StepPredictionWanted>(tuning->event)) {
    unanswered_ = std::get<StepPredictionWanted>(tuning->event);
  } else {
    DoAction(action);
  }
}

absl::Status JobLoop::Run(ControlService& service) {
  service_ = &service;
  if (newest_best_.has_value()) Do(*newest_best_);
  recalled_commit_ = !left_.empty();
  for (const Action& action : std::exchange(left_, {})) DoAction(action);
  if (unanswered_.has_value()) DoTuning(*unanswered_);
  const std::function<bool()>& stop_wanted = options_.stop_wanted;
  while (!end_.has_value()) {
    if (stop_wanted && stop_wanted() && !stop_asked_) {
      stop_asked_ = true;
      reporter_.Say(service.Stop().message());
    }
    for (const Action& action : service.NextActions(kLoopTime)) DoAction(action);
    reporter_.OnStatus(service.Status());
    if (const absl::Status written = reporter_.Flush(); !written.ok()) {
      service.OnTrouble(std::string(written.message()));
    }
  }
  prediction_ = {};  // it uses the service
  return *end_;
}

void JobLoop::DoAction(const Action& action) {
  std::visit([this](const auto& one) { Do(one); }, action);
}

void JobLoop::Do(const NewBestAction& better) {
  const absl::Status written = WriteBest(run_dir_, better.best);
  if (!written.ok()) service_->OnTrouble(std::string(written.message()));
}

void JobLoop::Do(const TuningAction& tuning) {
  std::visit([this](const auto& event) { DoTuning(event); }, tuning.event);
}

// One at a time: the next is wanted only when this one has been answered.
void JobLoop::DoTuning(const StepPredictionWanted& wanted) {
  prediction_ = std::jthread([this, wanted](const std::stop_token& stop) {
    absl::StatusOr<std::vector<double>> seconds = options_.predict_steps(config_, wanted, stop);
    if (stop.stop_requested()) return;
    service_->OnStepsPredicted(wanted.round, std::move(seconds).value_or(std::vector<double>()));
  });
}

absl::StatusOr<std::string> JobLoop::Commit(const CommitCheckpointAction& commit,
                                            bool recalled) const {
  const std::string folder = CheckpointPath(run_dir_, commit.manifest.version());
  if (recalled) {
    const absl::StatusOr<FoundCheckpoint> there = FindCheckpoint(folder);
    if (there.ok() && IsOf(*there, commit.manifest)) return folder;
  }
  return CommitCheckpoint(run_dir_, commit.manifest,
                          {.keep = config_.checkpoint().keep(), .held = commit.held});
}

void JobLoop::Do(const CommitCheckpointAction& commit) {
  const absl::StatusOr<std::string> folder = Commit(commit, std::exchange(recalled_commit_, false));
  if (folder.ok()) reporter_.OnCheckpoint(commit, *folder);
  service_->OnCheckpointCommitted(commit.manifest.version(), folder.status());
}

}  // namespace tug
