// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/scheduled_step.h"

#include <utility>

#include "absl/status/statusor.h"
#include "base/median.h"
#include "config/placement_mode.h"
#include "lab/experiment/measures/link_plan.h"
#include "model/replay/replay_profile.h"
#include "plan/link_rate.h"
#include "prediction/scheduling.h"
#include "prediction/step_prediction.h"

namespace tug {
namespace {

// Steps partly under the old and partly under the new schedule: those in progress, and those that
// begin before all nodes have received the new one, within two or three heartbeats.
constexpr double kStepsBetweenSchedules = 3;
constexpr double kSecondsBetweenSchedules = 0.6;

// Bits per second; none: the place has no links.
std::optional<double> TestbedRate(const Place& place) {
  if (!HasLinks(place)) return std::nullopt;
  const absl::StatusOr<double> rate = ParseLinkRate(place.testbed().link());
  return rate.ok() ? std::optional(*rate) : std::nullopt;
}

bool HasAHostForEachNode(const JobConfig& config, const Place& place) {
  const uint32_t nodes = config.cluster().servers() + config.cluster().workers();
  const uint32_t hosts = place.testbed().hosts();
  return !StartsServersBesideWorkers(config) && (hosts == 0 || hosts >= nodes);
}

bool IsImpaired(const ImpairConfig& impair) {
  return impair.delay_ms() > 0 || impair.jitter_ms() > 0 || impair.loss() > 0 ||
         impair.rate_mbit() > 0;
}

std::optional<SettledSchedule> SettledBefore(const RunFigures& figures, uint64_t warm_up_steps) {
  if (!figures.settled.has_value()) return std::nullopt;
  std::vector<double> seconds;
  for (const StepPoint& point : StepsAfter(figures, warm_up_steps)) {
    seconds.push_back(point.mean_seconds);
  }
  const double step_seconds = Median(std::move(seconds));
  if (step_seconds <= 0) return std::nullopt;
  const double between = kStepsBetweenSchedules + kSecondsBetweenSchedules / step_seconds;
  const bool in_time =
      static_cast<double>(figures.settled->step) + between <= static_cast<double>(warm_up_steps);
  return in_time ? figures.settled : std::nullopt;
}

TimelineSpan::Row RowOf(SimulatedSpan::Kind kind) {
  switch (kind) {
    case SimulatedSpan::Kind::kForward:
      return TimelineSpan::Row::kForward;
    case SimulatedSpan::Kind::kBackward:
      return TimelineSpan::Row::kBackward;
    case SimulatedSpan::Kind::kPush:
      return TimelineSpan::Row::kPush;
    case SimulatedSpan::Kind::kPull:
      return TimelineSpan::Row::kPull;
  }
  return TimelineSpan::Row::kForward;
}

// The bound schedules one direction of the busiest link. As many bytes cross the other one, in the
// fluid schedule at the same time: weights are pulled the moment their gradient is pushed.
Timeline BothWays(const SchedulingPrediction& bound) {
  using Row = TimelineSpan::Row;
  Timeline timeline{.seconds = bound.step_seconds};
  for (const SimulatedSpan& span : bound.spans) {
    const Row row = RowOf(span.kind);
    timeline.spans.push_back({row, span.block, span.begin_seconds, span.end_seconds});
    if (row != Row::kPush && row != Row::kPull) continue;
    timeline.spans.push_back({row == Row::kPush ? Row::kPull : Row::kPush, span.block,
                              span.begin_seconds, span.end_seconds});
  }
  return timeline;
}

}  // namespace

ScheduledStep ScheduledStepOf(const RunFigures& figures, const JobConfig& config,
                              const Place& place, uint64_t warm_up_steps) {
  ScheduledStep step{.settled = SettledBefore(figures, warm_up_steps)};
  const std::optional<double> rate = TestbedRate(place);
  if (!rate.has_value() || !HasAHostForEachNode(config, place) ||
      IsImpaired(config.comm().impair())) {
    return step;
  }
  const double link = PayloadBytesPerSecond(*rate);
  const absl::StatusOr<SchedulingPrediction> bound = FluidBound(config, link);
  if (bound.ok()) step.bound = WorkedOutStep{bound->step_seconds, BothWays(*bound)};
  JobConfig ran = config;
  if (config.comm().scheduler() == CommConfig::AUTO) {
    if (!step.settled.has_value()) return step;
    ran = WithSchedule(config, {step.settled->partition_bytes, step.settled->credit_bytes});
  }
  const absl::StatusOr<SchedulingPrediction> predicted = PredictScheduling(ran, TestbedHosts(link));
  if (predicted.ok()) step.predicted_seconds = predicted->step_seconds;
  return step;
}

LinkLoad LinkLoadOf(const JobConfig& config, const Place& place) {
  const ReplayProfile& profile = config.replay().resolved_profile();
  LinkLoad load{.model_bytes = static_cast<double>(ReplayParameters(profile)) * sizeof(float),
                .compute_seconds = (ReplayForwardMs(profile) + ReplayBackwardMs(profile)) * 1e-3};
  const std::optional<double> link = TestbedRate(place);
  const double bits = link.value_or(config.comm().impair().rate_mbit() * 1e6);
  if (bits <= 0 || StartsServersBesideWorkers(config)) return load;
  // Without testbed hosts, each process has its own rate.
  const uint32_t hosts = link.has_value() ? place.testbed().hosts() : 0;
  const double models = BusiestLinkModels({.servers = config.cluster().servers(),
                                           .workers = config.cluster().workers(),
                                           .hosts = hosts});
  load.transfer_seconds = models * load.model_bytes / PayloadBytesPerSecond(bits);
  return load;
}

std::vector<std::string> BlockNamesOf(const JobConfig& config) {
  std::vector<std::string> names;
  for (const ReplayBlock& block : config.replay().resolved_profile().blocks()) {
    names.push_back(block.name());
  }
  return names;
}

}  // namespace tug
