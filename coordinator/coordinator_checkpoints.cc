// Checkpoints: parts that lanes and workers write, and commits.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/coordinator.h"
#include "proto/sync_mode.h"

namespace tug {

bool Coordinator::IsWanted(const Member& member, const CheckpointPart& part) const {
  // One that is newer than any can be would make all others old.
  const uint64_t last = timeline_->end.final_version().value_or(options_.config.train().steps());
  if (part.version() > last || !timeline_->checkpoints.Wants(part)) return false;
  if (!part.has_virtual_worker()) return !rolling_back_;
  if (member.kind != WORKER) return false;
  const uint32_t owner = places_.owners()[part.virtual_worker()];
  if (owner == member.id) return true;
  return timeline_->checkpoints.CountsAfterMove(part.version(),
                                                places_.start_clocks()[part.virtual_worker()]);
}

// Lanes of another placement write nothing that is waited for, nor do workers of virtual workers
// that are others' by then, or of a version that is whole without them.
bool Coordinator::Matters(const Member& member, const CheckpointPart& failed) const {
  if (!view_.has_value() || rolling_back_) return false;
  if (timeline_->checkpoints.IsGivenUp(failed.version())) return false;
  if (!failed.has_virtual_worker()) return failed.placement() == view_->placement();
  const std::vector<uint32_t>& owners = places_.owners();
  return failed.virtual_worker() < owners.size() && owners[failed.virtual_worker()] == member.id &&
         !timeline_->checkpoints.IsOld(failed.version());
}

void Coordinator::AbsorbParts(const Member& member, const HeartbeatRequest& request,
                              absl::Time now) {
  for (const CheckpointPart& part : request.parts()) {
    if (!part.error().empty()) {
      if (!Matters(member, part)) continue;
      OnCheckpointFailed(part.version(), absl::StrCat(member.Name(), ": ", part.error()), now);
      if (Ended()) return;
      continue;
    }
    if (!IsWanted(member, part)) continue;
    for (const CollectedCheckpoint& whole : timeline_->checkpoints.Add(part)) AddCommit(whole);
  }
  ReleaseCommit();
}

void Coordinator::OnCheckpointFailed(uint64_t version, const std::string& why, absl::Time now) {
  if (!timeline_->failed.Add(version, why)) return;
  timeline_->checkpoints.GiveUp(version);
  FailWithoutLastCheckpoint(now);
  if (Ended()) return;
  const std::string text = absl::StrCat("checkpoint of step ", version, " was not written: ", why);
  if (timeline_->failed.too_many()) {
    return Fail(
        absl::StrCat(text, "; ", FailedCheckpoints::kMostInARow, " in a row were not written"),
        now);
  }
  const uint64_t interval = std::max<uint64_t>(options_.config.checkpoint().interval(), 1);
  const uint64_t newest = std::max(version, timeline_->progress.step());
  AddNotice(
      absl::StrCat("unwritten ", timeline_->start.number, " ", version),
      absl::StrCat(text, "; the next is tried at step ",
                   std::min((newest / interval + 1) * interval, options_.config.train().steps())));
}

void Coordinator::FailWithoutLastCheckpoint(absl::Time now) {
  const uint64_t last = timeline_->end.final_version().value_or(options_.config.train().steps());
  const std::string* const why = timeline_->failed.Find(last);
  if (rolling_back_ || why == nullptr) return;
  Fail(absl::StrCat("the last checkpoint, of step ", last, ", was not written: ", *why), now);
}

bool Coordinator::CommitsAfterFailure() const {
  return phase_ == FAILED && !end_reported_ && !rolling_back_ && view_.has_value() &&
         !timeline_->finite_loss.exceeded();
}

void Coordinator::AddCommit(const CollectedCheckpoint& whole) {
  CommitCheckpointAction commit;
  commit.pause_seconds = whole.pause_seconds;
  commit.write_seconds = whole.write_seconds;
  Manifest& manifest = commit.manifest;
  manifest.set_format_version(kManifestFormat);
  *manifest.mutable_config() = options_.config;
  *manifest.mutable_blocks() = blocks_.layout().blocks;
  manifest.set_version(whole.version);
  manifest.set_timeline(timeline_->start.number);
  manifest.mutable_clocks()->Assign(whole.clocks.begin(), whole.clocks.end());
  for (const CheckpointPart& each : whole.parts) {
    ManifestFile* file = manifest.add_files();
    file->set_name(each.file());
    file->set_size_bytes(each.size_bytes());
    file->set_xxh3(each.xxh3());
    if (each.has_virtual_worker()) file->set_virtual_worker(each.virtual_worker());
  }
  if (timeline_->progress.newest_eval().has_value()) {
    manifest.set_validation_loss(timeline_->progress.newest_eval()->loss);
  }
  waiting_commits_.push_back(std::move(commit));
  SkipCommits();
}

// Of checkpoints that follow one another faster than they can be committed, those that the next
// commits would delete.
void Coordinator::SkipCommits() {
  const size_t keep = std::max<size_t>(options_.config.checkpoint().keep(), 1);
  if (waiting_commits_.size() <= keep) return;
  const auto kept = waiting_commits_.end() - static_cast<std::ptrdiff_t>(keep);
  const auto skipped =
      std::remove_if(waiting_commits_.begin(), kept, [this](const CommitCheckpointAction& commit) {
        return !best_->MayBecomeBest(commit.manifest.version());
      });
  waiting_commits_.erase(skipped, kept);
}

// A virtual worker of a lost worker holds no checkpoint up before another one has it, nor does one
// that nobody is to have.
void Coordinator::SetCarried() {
  if (!KeepsResiduals(options_.config)) return;
  std::vector<bool> carried;
  for (const uint32_t owner : places_.owners()) {
    carried.push_back(membership_.Find(owner) != nullptr);
  }
  for (const CollectedCheckpoint& whole : timeline_->checkpoints.SetCarried(std::move(carried))) {
    AddCommit(whole);
  }
  ReleaseCommit();
}

void Coordinator::GiveUpResiduals() {
  for (const CollectedCheckpoint& whole : timeline_->checkpoints.SetCarried({})) AddCommit(whole);
  ReleaseCommit();
}

void Coordinator::ReleaseCommit() {
  if (committing_.has_value() || waiting_commits_.empty()) return;
  CommitCheckpointAction commit = std::move(waiting_commits_.front());
  waiting_commits_.pop_front();
  committing_ = commit.manifest.version();
  committing_clocks_.assign(commit.manifest.clocks().begin(), commit.manifest.clocks().end());
  committing_residuals_ = ResidualsIn(commit.manifest);
  // Every earlier version that may become the best is committed by now, and what became the best of
  // them stands before this action. So a version that becomes the best later is held here, or is
  // not committed yet.
  commit.held = best_->HeldBeside(*committing_);
  actions_.emplace_back(std::move(commit));
}

bool Coordinator::KnowsOfCheckpoint(uint64_t version) const {
  return version <= committed_version() || committing_ == version ||
         timeline_->failed.Find(version) != nullptr ||
         std::ranges::any_of(waiting_commits_, [version](const CommitCheckpointAction& commit) {
           return commit.manifest.version() == version;
         });
}

void Coordinator::OnCheckpointCommitted(uint64_t version, const absl::Status& status,
                                        absl::Time now) {
  Keep(now, [&](JournalRecord& record) {
    record.mutable_committed()->set_version(version);
    record.mutable_committed()->set_code(static_cast<int>(status.code()));
    record.mutable_committed()->set_error(std::string(status.message()));
  });
  if (committing_ == version) committing_.reset();
  if (status.ok()) {
    timeline_->failed.OnCommitted(version);
    if (version > newest_start_.version || newest_start_.restore_path.empty()) {
      newest_start_ = {.version = version,
                       .restore_path = CheckpointPath(options_.run_dir, version),
                       .clocks = std::move(committing_clocks_),
                       .residuals = std::move(committing_residuals_)};
    }
    if (const auto best = best_->OnCommitted(version)) {
      newest_best_ = *best;
      actions_.emplace_back(NewBestAction{*best});
    }
  } else {
    OnCheckpointFailed(
        version, absl::StrCat("it cannot be committed: ", std::string(status.message())), now);
  }
  ReleaseCommit();
  Advance(now);
}

}  // namespace tug
