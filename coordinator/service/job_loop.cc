// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/job_loop.h"

#include <algorithm>
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

void JobLoop::Recall(const JournalRecord& record, std::vector<Action> actions) {
  for (const Action& action : recalled_.Add(record, std::move(actions))) Remember(action);
}

void JobLoop::Remember(const Action& action) {
  if (const auto* const commit = std::get_if<CommitCheckpointAction>(&action)) {
    reporter_.OnCheckpoint(*commit, CheckpointPath(run_dir_, commit->manifest.version()));
  } else if (const auto* const traced = std::get_if<TraceCompleted>(&action)) {
    reporter_.RecallTrace(traced->trace.range);
  } else {
    DoAction(action);  // the reporter skips what was written already
  }
}

absl::Status JobLoop::Run(ControlService& service) {
  service_ = &service;
  const std::vector<Action> left = recalled_.TakeLeft();
  recalled_commit_ = std::any_of(left.begin(), left.end(), [](const Action& action) {
    return std::holds_alternative<CommitCheckpointAction>(action);
  });
  for (const Action& action : left) DoAction(action);
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
  prediction_ = {};  // waits for it to stop: it uses the service
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

// One prediction at a time: the next is requested only after this one was answered.
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
