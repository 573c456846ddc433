// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/fault_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "config/sync_mode.h"

namespace tug {
namespace {

constexpr size_t kMaxViolations = 8;
// Once no fault is active, a job makes progress within this many comm.resend_ms, plus
// kMaxQuietTime.
constexpr int kMaxResends = 160;
constexpr absl::Duration kMaxQuietTime = absl::Seconds(3);

// Checks a run that has ended.
class EndCheck {
 public:
  EndCheck(const Scenario& scenario, const SimulationResult& result, const SegmentTable& table,
           std::vector<std::string>& violations)
      : scenario_(scenario), result_(result), table_(table), violations_(violations) {}

  void Check(const WeightsByVersion& pulled, const WeightsByVersion& saved) {
    for (const std::string& untrue : result_.untrue) Say(untrue);
    for (const std::string& broken : result_.broken_checkpoints) Say(broken);
    if (scenario_.loses_nobody && result_.fenced > 0) {
      Say(absl::StrCat("the job continued without ", result_.fenced, " nodes that had no fault"));
    }
    const bool failed = scenario_.may_fail && absl::IsAborted(result_.status);
    if (failed || result_.killed) return CheckSaved(saved);
    if (!result_.status.ok()) return Say(absl::StrCat("the job: ", result_.status.message()));
    CheckMemory();
    CheckStalls();
    if (scenario_.one_timeline && result_.timelines > 1) {
      Say(absl::StrCat("the job rolled back to a checkpoint, ", result_.timelines - 1, " times"));
    }
    CheckSaved(saved);
    if (scenario_.same_bits) CheckEvaluated(pulled);
    if (scenario_.counts_pushes && !result_.saved_clocks.empty()) CheckPushes();
  }

 private:
  void Say(std::string text) {
    if (violations_.size() > kMaxViolations) return;
    violations_.push_back(violations_.size() < kMaxViolations ? std::move(text) : "and more");
  }

  void CheckStalls() {
    const absl::Duration resend = absl::Milliseconds(scenario_.options.config.comm().resend_ms());
    const absl::Duration most = kMaxQuietTime + kMaxResends * resend;
    if (result_.longest_stall <= most) return;
    Say(absl::StrCat("the job made no progress for ", absl::FormatDuration(result_.longest_stall),
                     " without a fault; with comm.resend_ms ", absl::ToInt64Milliseconds(resend),
                     " the limit is ", absl::FormatDuration(most)));
  }

  void CheckMemory() {
    const CommConfig& comm = scenario_.options.config.comm();
    const uint64_t push = std::max(comm.credit_bytes(), comm.partition_bytes());
    if (result_.peak_push_bytes > push) {
      Say(absl::StrCat("pushes of ", result_.peak_push_bytes,
                       " bytes were in flight, but the credit is ", push));
    }
    const uint64_t answer = std::max(comm.pull_credit_bytes(), comm.partition_bytes());
    if (result_.peak_answer_bytes > answer) {
      Say(absl::StrCat("replies of ", result_.peak_answer_bytes,
                       " bytes were in flight, but the credit is ", answer));
    }
    // server/pushes/push_admission.h: one partition, which is at least a segment, per level of the
    // tree.
    const uint64_t partition =
        std::max(comm.partition_bytes(), comm.segment_elements() * sizeof(float));
    const uint32_t virtual_workers = scenario_.options.config.cluster().virtual_workers();
    const uint64_t levels = static_cast<uint64_t>(std::bit_width(virtual_workers)) + 2;
    if (result_.peak_held_beyond_bytes > levels * partition) {
      Say(absl::StrCat("sums of a lane held ", result_.peak_held_beyond_bytes,
                       " bytes more than its segments and its pending-sum budget"));
    }
  }

  void CheckSaved(const WeightsByVersion& saved) {
    if (!scenario_.same_bits) return;
    for (const auto& [place, hash] : result_.checkpoint_hashes) {
      const auto found = saved.find(place);
      if (found == saved.end() || found->second == hash) continue;
      Say(absl::StrCat("block ", place.first, " in the checkpoint of step ", place.second,
                       " differs from that of the job without faults"));
    }
  }

  // Checks by the step of the weights: a job that is stopped while it rolls back may end with an
  // earlier checkpoint than that of the step that it has evaluated.
  void CheckEvaluated(const WeightsByVersion& pulled) {
    const uint64_t last =
        result_.checkpoints.empty() ? result_.first_step : result_.checkpoints.back();
    for (size_t w = 0; w < result_.evaluated.size(); ++w) {
      for (uint32_t b = 0; b < result_.evaluated[w].size(); ++b) {
        const std::vector<float>& weights = result_.evaluated[w][b];
        const uint64_t version = result_.evaluated_versions[w][b];
        if (weights.empty()) continue;
        if (version != last && !result_.stopped_waiting) {
          Say(absl::StrCat("the last evaluation read block ", b, " at step ", version,
                           ", but the last checkpoint is of step ", last));
        }
        const auto found = pulled.find({b, version});
        if (found == pulled.end() || found->second == HashOf(weights)) continue;
        Say(absl::StrCat("the last evaluation read weights of block ", b,
                         " that differ from those of the job without faults"));
      }
    }
  }

  // A job that is stopped during or after a rollback may end with the checkpoint that it rolls back
  // to. Its segments were saved one by one as they reached that version: during steps.
  bool EndsWhereItGoesBackTo() const {
    if (!scenario_.stops) return false;
    return result_.stopped_waiting ||
           (result_.timelines > 1 && result_.checkpoints.back() == result_.start_version);
  }

  void CheckPushes() {
    const JobConfig& config = scenario_.options.config;
    const uint32_t virtual_workers = config.cluster().virtual_workers();
    const bool amid_steps = EndsWhereItGoesBackTo();
    const bool shrinks = config.fault().on_worker_loss() == FaultConfig::SHRINK;
    for (uint32_t id = 0; id < table_.size(); ++id) {
      const std::vector<uint64_t>& clocks = result_.saved_clocks[id];
      if (clocks.size() != size_t{1} + virtual_workers) {
        return Say(absl::StrCat("segment ", id, " has no clocks in the last checkpoint"));
      }
      const uint64_t pushes = std::accumulate(clocks.begin() + 1, clocks.end(), uint64_t{0});
      if (clocks[0] != pushes) {
        return Say(
            absl::StrCat("segment ", id, " has ", clocks[0], " updates from ", pushes, " pushes"));
      }
      // With SHRINK no worker repeats the step that a lost worker was in.
      if (!shrinks && !amid_steps && clocks != result_.saved_clocks[0]) {
        return Say(absl::StrCat("segments 0 and ", id, " end at different clocks"));
      }
    }
    for (uint32_t id = 0; id < table_.size() && KnowsSums(); ++id) {
      if (!CheckSum(id)) return;
    }
  }

  bool IsEncoded() const {
    return scenario_.options.config.comm().push_codec().codec_case() !=
           PushCodecConfig::CODEC_NOT_SET;
  }

  // The last checkpoint has all residuals, unless a virtual worker has moved to another worker, was
  // rolled back to the residuals of a checkpoint, which lanes saved at other clocks, or has not
  // written them in time, which the user is told.
  bool KnowsSums() const {
    if (!IsEncoded()) return true;
    const auto gives_up = [](const std::string& notice) {
      return absl::StrContains(notice, "checkpoints are used without them");
    };
    return scenario_.conserves && result_.timelines == 1 && result_.fenced == 0 &&
           std::ranges::none_of(result_.notices, gives_up) &&
           result_.checkpoints.back() == scenario_.options.config.train().steps();
  }

  // The weights are 1 minus the effect of each push once, except for residuals: exact without a
  // codec, see scenario.cc.
  bool CheckSum(uint32_t id) {
    const Segment& segment = table_.segment(id);
    const SimulationOptions& options = scenario_.options;
    std::vector<float> sum(segment.elements());
    const uint64_t poisoned = table_.block_elements(segment.block) / 2;
    const bool is_poisoned =
        segment.block == 0 && segment.begin <= poisoned && poisoned < segment.end;
    const std::vector<uint64_t>& clocks = result_.saved_clocks[id];
    for (uint32_t v = 0; v + 1 < clocks.size(); ++v) {
      for (uint64_t clock = 0; clock < clocks[1 + v]; ++clock) {
        if (is_poisoned && v == options.poisoned_virtual_worker &&
            clock == options.poisoned_clock) {
          continue;
        }
        const SimulatedGradients gradients(v, clock, segment.block);
        for (size_t e = 0; e < sum.size(); ++e) sum[e] += gradients[segment.begin + e];
      }
    }
    const auto rate = static_cast<float>(options.config.optimizer().learning_rate());
    const std::vector<float>& weights = result_.saved_weights[segment.block];
    const std::vector<float>& residuals = result_.saved_residuals[segment.block];
    const float tolerance = IsEncoded() ? 1e-4f : 0.0f;
    for (size_t e = 0; e < sum.size(); ++e) {
      // Two micro-batches, a mean over kSimulatedTokens.
      const float applied = 2.0f * sum[e] - residuals[segment.begin + e];
      const float expected = 1.0f - rate / kSimulatedTokens * applied;
      if (std::abs(weights[segment.begin + e] - expected) <= tolerance) continue;
      Say(absl::StrCat("element ", e, " of segment ", id, " is ", weights[segment.begin + e],
                       ", but would be ", expected, " if every push were applied once"));
      return false;
    }
    return true;
  }

  const Scenario& scenario_;
  const SimulationResult& result_;
  const SegmentTable& table_;
  std::vector<std::string>& violations_;
};

}  // namespace

const FaultRunner::Expected& FaultRunner::ExpectedOf(const Scenario& scenario) {
  const auto [place, is_new] = expected_.try_emplace(scenario.kind);
  if (!is_new) return place->second;
  const JobConfig& config = scenario.undisturbed.config;
  const auto table =
      SegmentTable::Create(scenario.undisturbed.blocks, config.comm().segment_elements());
  TUG_CHECK(table.ok());
  RunWatch watch({}, config, *table);
  SimulationOptions options = scenario.undisturbed;
  options.watch = &watch;
  const SimulationResult result = Simulate(options);
  TUG_CHECK(result.status.ok()) << "without faults: " << result.status.ToString();
  place->second = {watch.seen(), result.checkpoint_hashes};
  return place->second;
}

FaultOutcome FaultRunner::Run(const Scenario& scenario, PlantedBug plant, const SayAt& say) {
  SimulatedStore store;
  FaultOutcome outcome;
  outcome.seed = scenario.seed;
  RunOnce(scenario, plant, say, store, outcome);
  if (!outcome.violations.empty() || store.checkpoints.empty()) return outcome;
  const Manifest& newest = store.checkpoints.rbegin()->second;
  if (newest.version() >= scenario.options.config.train().steps()) return outcome;
  const Scenario resumed = MakeResumed(scenario, newest);
  if (say) {
    say(absl::ZeroDuration(),
        absl::StrCat("the run is resumed from step ", newest.version(), ": ", resumed.Text()));
  }
  RunOnce(resumed, plant, say, store, outcome);
  ++outcome.resumed;
  return outcome;
}

void FaultRunner::RunOnce(const Scenario& scenario, PlantedBug plant, const SayAt& say,
                          SimulatedStore& store, FaultOutcome& outcome) {
  static const Expected kNone;
  const Expected& expected = scenario.same_bits ? ExpectedOf(scenario) : kNone;
  const auto table = SegmentTable::Create(scenario.options.blocks,
                                          scenario.options.config.comm().segment_elements());
  TUG_CHECK(table.ok());
  RunWatch watch({.expected = scenario.same_bits ? &expected.pulled : nullptr},
                 scenario.options.config, *table);
  SimulationOptions options = scenario.options;
  options.plant = plant;
  options.watch = &watch;
  options.store = &store;
  options.say = say;
  const SimulationResult result = Simulate(options);
  outcome.violations = watch.violations();
  EndCheck(scenario, result, *table, outcome.violations).Check(expected.pulled, expected.saved);
  for (size_t f = 0; f < kFaultKinds; ++f) outcome.faults[f] += result.faults[f];
  outcome.fenced += result.fenced;
  outcome.rollbacks += result.timelines - 1;
  outcome.messages += result.messages;
  outcome.longest_stall = std::max(outcome.longest_stall, result.longest_stall);
}

}  // namespace tug
