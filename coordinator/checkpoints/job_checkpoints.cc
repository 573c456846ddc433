// SPDX-License-Identifier: Apache-2.0
#include "coordinator/checkpoints/job_checkpoints.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest_file.h"
#include "config/sync_mode.h"

namespace tug {

JobCheckpoints::JobCheckpoints(const CoordinatorOptions& options, const JobBlocks& blocks,
                               const JobStage& stage, const ViewChange& places,
                               ActionQueue& actions)
    : options_(options),
      blocks_(blocks),
      stage_(stage),
      places_(places),
      actions_(actions),
      best_(options.config, options.best),
      newest_(options.start) {}

void JobCheckpoints::BeginTimeline(const Timeline& timeline) {
  timeline_ = &timeline;
  const TimelineStart& start = timeline.start;
  const bool writes_initial = start.restore_path.empty() && options_.config.checkpoint().initial();
  collector_.emplace(/*lanes=*/1, static_cast<uint32_t>(start.clocks.size()),
                     writes_initial ? std::nullopt : std::optional(start.version));
  failed_ = {};
  best_.BeginTimeline();
}

void JobCheckpoints::SetPlacement(const View& view) {
  collector_->SetPlacement(view.placement(), {view.lane_of_segment().data(),
                                              static_cast<size_t>(view.lane_of_segment_size())});
}

void JobCheckpoints::SetCarried(std::vector<bool> carried) {
  if (KeepsResiduals(options_.config)) AddWhole(collector_->SetCarried(std::move(carried)));
  Release();
}

bool JobCheckpoints::IsWanted(const Member& member, const CheckpointPart& part) const {
  return part.error().empty() ? PartIsWanted(member, part) : FailureMatters(member, part);
}

bool JobCheckpoints::PartIsWanted(const Member& member, const CheckpointPart& part) const {
  // A version beyond the last step would make all others old.
  if (part.version() > timeline_->LastStep() || !collector_->Wants(part)) return false;
  if (!part.has_virtual_worker()) return !stage_.rolling_back();
  if (member.kind != WORKER) return false;
  return places_.owners()[part.virtual_worker()] == member.id ||
         collector_->CountsAfterMove(part.version(), places_.start_clocks()[part.virtual_worker()]);
}

// A failure does not matter if it is of a lane of another placement, of a virtual worker that has
// moved to another worker, or of a version that completed without its residual.
bool JobCheckpoints::FailureMatters(const Member& member, const CheckpointPart& failed) const {
  if (stage_.rolling_back() || collector_->IsGivenUp(failed.version())) return false;
  if (!failed.has_virtual_worker()) return failed.placement() == collector_->placement();
  const std::vector<uint32_t>& owners = places_.owners();
  return failed.virtual_worker() < owners.size() && owners[failed.virtual_worker()] == member.id &&
         !collector_->IsOld(failed.version());
}

std::string JobCheckpoints::AddParts(const Member& member, const HeartbeatRequest& request) {
  for (const CheckpointPart& part : request.parts()) {
    if (!IsWanted(member, part)) continue;
    if (part.error().empty()) {
      AddWhole(collector_->Add(part));
      continue;
    }
    std::string fatal =
        OnFailed(part.version(), absl::StrCat(member.NameAndPlace(), ": ", part.error()));
    if (!fatal.empty() || stage_.ended()) return fatal;
  }
  Release();
  return "";
}

std::string JobCheckpoints::OnFailed(uint64_t version, const std::string& why) {
  if (!failed_.Add(version, why)) return "";
  collector_->GiveUp(version);
  if (stage_.ended()) return "";
  if (std::string fatal = WhyLastFailed(); !fatal.empty()) return fatal;
  const std::string text = absl::StrCat("checkpoint of step ", version, " was not written: ", why);
  if (failed_.too_many()) {
    return absl::StrCat(text, "; ", FailedCheckpoints::kMaxConsecutive,
                        " checkpoints in a row were not written");
  }
  const uint64_t interval = std::max<uint64_t>(options_.config.checkpoint().interval(), 1);
  const uint64_t newest = std::max(version, timeline_->progress.step());
  actions_.AddNotice(
      absl::StrCat("unwritten ", timeline_->start.number, " ", version),
      absl::StrCat(text, "; next attempt at step ",
                   std::min((newest / interval + 1) * interval, options_.config.train().steps())));
  return "";
}

std::string JobCheckpoints::WhyLastFailed() const {
  const uint64_t last = timeline_->LastStep();
  const std::string* const why = failed_.Find(last);
  if (stage_.rolling_back() || why == nullptr) return "";
  return absl::StrCat("the last checkpoint (step ", last, ") was not written: ", *why);
}

CommitCheckpointAction JobCheckpoints::CommitOf(const CollectedCheckpoint& whole) const {
  CommitCheckpointAction commit;
  commit.pause_seconds = whole.pause_seconds;
  commit.write_seconds = whole.write_seconds;
  Manifest& manifest = commit.manifest;
  manifest.set_format_version(kManifestFormatVersion);
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
  return commit;
}

// Drops queued checkpoints that the next commits would delete, when they arrive faster than they
// can be committed.
void JobCheckpoints::SkipCommits() {
  const size_t keep = std::max<size_t>(options_.config.checkpoint().keep(), 1);
  if (waiting_.size() <= keep) return;
  const auto kept = waiting_.end() - static_cast<std::ptrdiff_t>(keep);
  const auto skipped =
      std::remove_if(waiting_.begin(), kept, [this](const CommitCheckpointAction& commit) {
        return !best_.MayBecomeBest(commit.manifest.version());
      });
  waiting_.erase(skipped, kept);
}

void JobCheckpoints::AddWhole(const std::vector<CollectedCheckpoint>& whole) {
  for (const CollectedCheckpoint& each : whole) {
    waiting_.push_back(CommitOf(each));
    SkipCommits();
  }
}

void JobCheckpoints::Release() {
  if (committing_.has_value() || waiting_.empty()) return;
  CommitCheckpointAction commit = std::move(waiting_.front());
  waiting_.pop_front();
  const Manifest& manifest = commit.manifest;
  committing_ = {.version = manifest.version(),
                 .clocks = {manifest.clocks().begin(), manifest.clocks().end()},
                 .residuals = ResidualsIn(manifest)};
  // Every earlier version that may become the best is committed by now, and a NewBestAction for one
  // precedes this action. So a version that becomes the best later is held here or not committed
  // yet.
  commit.held = best_.HeldBeside(manifest.version());
  actions_.Add(std::move(commit));
}

std::optional<uint64_t> JobCheckpoints::committing() const {
  if (!committing_.has_value()) return std::nullopt;
  return committing_->version;
}

bool JobCheckpoints::MayExist(uint64_t version) const {
  return version <= committed_version() || committing() == version ||
         failed_.Find(version) != nullptr ||
         std::ranges::any_of(waiting_, [version](const CommitCheckpointAction& commit) {
           return commit.manifest.version() == version;
         });
}

std::string JobCheckpoints::OnCommitted(uint64_t version, const absl::Status& status) {
  TimelineStart committed{.version = version};
  if (committing() == version) committed = *std::exchange(committing_, std::nullopt);
  committed.restore_path = CheckpointPath(options_.run_dir, version);
  if (status.ok()) {
    failed_.OnCommitted(version);
    if (version > newest_.version || newest_.restore_path.empty()) newest_ = std::move(committed);
    TakeBest(best_.OnCommitted(version));
  } else {
    std::string fatal = OnFailed(version, absl::StrCat("cannot commit it: ", status.message()));
    if (!fatal.empty()) return fatal;
  }
  Release();
  return "";
}

void JobCheckpoints::AddEval(const EvalMetrics& eval) { TakeBest(best_.AddEval(eval)); }

void JobCheckpoints::TakeBest(const std::optional<BestCheckpoint>& best) {
  if (best.has_value()) actions_.Add(NewBestAction{*best});
}

}  // namespace tug
