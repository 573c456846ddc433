// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/coordinator_actions.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tug {
namespace {

constexpr absl::Duration kCommitTime = absl::Milliseconds(10);

}  // namespace

CoordinatorActions::CoordinatorActions(SimulatedWorld& world, SimulationResult& result)
    : world_(world),
      result_(result),
      told_(result.first_step, world.options.config.train().steps(),
            [&result](const std::string& text) { result.untrue.push_back(text); }) {}

void CoordinatorActions::Run(Coordinator& coordinator) {
  coordinator_ = &coordinator;
  Work();
}

void CoordinatorActions::Run(Coordinator& coordinator, std::vector<Action> actions) {
  std::move(actions.begin(), actions.end(), std::back_inserter(waiting_));
  Run(coordinator);
}

void CoordinatorActions::Drop() {
  ++process_;
  commits_ = false;
  waiting_.clear();
}

void CoordinatorActions::Work() {
  // An action may cause further ones.
  while (!commits_) {
    for (Action& action : coordinator_->TakeActions()) waiting_.push_back(std::move(action));
    if (waiting_.empty()) return;
    const Action action = std::move(waiting_.front());
    waiting_.pop_front();
    std::visit([this](const auto& one) { Do(one); }, action);
  }
}

void CoordinatorActions::Kill(const absl::Status& status) {
  ended_ = result_.killed = true;
  result_.status = status;
}

void CoordinatorActions::Do(const CommitCheckpointAction& commit) {
  const Manifest& manifest = commit.manifest;
  std::vector<uint64_t>& committed = result_.checkpoints;
  if (committed.empty() || committed.back() != manifest.version()) {
    committed.push_back(manifest.version());
  }
  world_.store.checkpoints[manifest.version()] = manifest;
  world_.Say(absl::StrCat("checkpoint of step ", manifest.version(), " is committed"));
  LookAt(manifest);
  stalls_.OnProgress(world_.time.Now());
  commits_ = true;
  world_.time.Schedule(kCommitTime, [this, version = manifest.version(), process = process_] {
    if (process == process_) Answer(version);
  });
}

void CoordinatorActions::Answer(uint64_t version) {
  if (world_.coordinator_frozen) {
    world_.waiting_calls.emplace_back([this, version, process = process_] {
      if (process == process_) Answer(version);
    });
    return;
  }
  commits_ = false;
  told_.OnCommitted(version);
  coordinator_->OnCheckpointCommitted(version, absl::OkStatus(), world_.time.Now());
  Work();
}

void CoordinatorActions::LookAt(const Manifest& manifest) {
  const uint64_t version = manifest.version();
  const SegmentTable& table = world_.table;
  std::vector<std::vector<float>> blocks(table.num_blocks());
  for (uint32_t b = 0; b < blocks.size(); ++b) blocks[b].resize(table.block_elements(b));
  result_.saved_clocks.assign(table.size(), {});
  std::vector<std::vector<float>> residuals = blocks;
  std::vector<int> found(table.size());
  for (const ManifestFile& file : manifest.files()) {
    for (const auto& [id, stored] : world_.store.files[file.name()]) {
      ++found[id];
      const Segment& segment = table.segment(id);
      std::copy(stored.weights.begin(), stored.weights.end(),
                blocks[segment.block].begin() + static_cast<ptrdiff_t>(segment.begin));
      result_.saved_clocks[id] = stored.clocks;
    }
    for (const auto& [id, values] : world_.store.residuals[file.name()].segments) {
      const Segment& segment = table.segment(id);
      for (size_t e = 0; e < segment.elements(); ++e) {
        residuals[segment.block][segment.begin + e] += values[e];
      }
    }
  }
  for (uint32_t id = 0; id < found.size(); ++id) {
    if (found[id] == 1) continue;
    result_.broken_checkpoints.push_back(absl::StrCat(
        "the checkpoint of step ", version, " has segment ", id, " ", found[id], " times"));
  }
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    result_.checkpoint_hashes[{b, version}] = HashOf(blocks[b]);
  }
  result_.saved_weights = std::move(blocks);
  result_.saved_residuals = std::move(residuals);
}

void CoordinatorActions::Do(const StepCompleted& step) {
  result_.losses.push_back(step.metrics.loss);
  stalls_.OnProgress(world_.time.Now());
}

void CoordinatorActions::Do(const TuningAction& tuning) {
  result_.trials += std::holds_alternative<TrialMetrics>(tuning.event) ? 1 : 0;
}

void CoordinatorActions::Do(const TimelineBegun& timeline) {
  ++result_.timelines;
  result_.start_version = timeline.version;
  world_.Say(absl::StrCat("timeline ", timeline.number, " begins, from step ", timeline.version));
  told_.OnTimeline(timeline.version);
  stalls_.OnDisturbed(world_.time.Now());
  const size_t steps = timeline.version - result_.first_step;
  result_.losses.resize(std::min(result_.losses.size(), steps));
}

void CoordinatorActions::Do(const NoticeAction& notice) {
  result_.notices.push_back(notice.text);
  world_.Say(notice.text);
  told_.OnNotice(notice.text);
}

void CoordinatorActions::Do(const JobEnded& end) {
  result_.status = end.status;
  ended_ = true;
  stalls_.OnProgress(world_.time.Now());
  if (!end.status.ok()) told_.OnFailure(std::string(end.status.message()));
  world_.Say(end.status.ok() ? "the job has ended" : std::string(end.status.message()));
}

}  // namespace tug
