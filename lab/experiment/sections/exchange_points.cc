// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/exchange_points.h"

#include <algorithm>

#include "lab/experiment/measures/link_plan.h"
#include "plan/link_rate.h"

namespace tug {
namespace {

constexpr double kMega = 1e6;
constexpr double kDefaultMessageUs = 100;

constexpr const char* kExchangeFields[] = {
    "exchange=", "collective.algorithm=", "placement.kind=", "cluster.servers="};

bool IsPlain(const JobConfig& config) {
  const ImpairConfig& impair = config.comm().impair();
  return config.sync().policy() == SyncConfig::BSP && config.sync().replicas() <= 1 &&
         impair.rate_mbit() == 0 && impair.delay_ms() == 0 && impair.loss() == 0 &&
         config.cluster().virtual_workers() == config.cluster().workers() &&
         config.collective().format() == CollectiveConfig::FP32 &&
         config.comm().pull_format() == CommConfig::FP32 &&
         !config.placement().host_weight_cache() &&
         config.comm().push_codec().codec_case() == PushCodecConfig::CODEC_NOT_SET;
}

std::optional<LinkCost> LinkCostOf(const Experiment& file, const PlannedCase& one,
                                   const ExchangeCase& exchange) {
  const TestbedPlace& testbed = one.place.testbed();
  const uint32_t workers = one.config.cluster().workers();
  const auto rate = ParseLinkRate(testbed.link());
  if (!HasLinks(one.place) || !rate.ok() || workers < 2 || !IsPlain(one.config)) return {};
  if (testbed.hosts() > 0 && testbed.hosts() != exchange.Hosts(workers)) return {};
  const double message_us = file.has_message_us() ? file.message_us() : kDefaultMessageUs;
  return LinkCost{.alpha = message_us * 1e-6, .beta = 1 / PayloadBytesPerSecond(*rate)};
}

// Memory of the worker, or of the server, that held most.
std::optional<NodeHeldBytes> MostHeld(const RunFigures& figures, bool server) {
  std::optional<NodeHeldBytes> most;
  for (const NodeFigures& node : figures.nodes) {
    if (node.server != server || node.held.total() == 0) continue;
    if (!most.has_value() || node.held.total() > most->total()) most = node.held;
  }
  return most;
}

void TakeFirstRepeat(const ExperimentResults& results, size_t number, ExchangePoint& point) {
  const PlannedCase& one = results.plan.cases[number];
  if (const ExperimentRow* row = results.Find(one, 0)) {
    const auto steps = static_cast<double>(one.config.train().steps());
    for (const LinkTraffic& link : row->links) {
      point.hosts.push_back({.sends = static_cast<double>(link.sent_bytes) / steps,
                             .receives = static_cast<double>(link.received_bytes) / steps});
    }
  }
  if (number >= results.courses.size() || !results.courses[number].figures.has_value()) return;
  point.worker_held = MostHeld(*results.courses[number].figures, /*server=*/false);
  point.server_held = MostHeld(*results.courses[number].figures, /*server=*/true);
}

}  // namespace

std::optional<double> ExchangePoint::HeldOnHost() const {
  if (!worker_held.has_value()) return std::nullopt;
  if (!exchange.IsPairedWithWorkers()) return static_cast<double>(worker_held->total());
  if (!server_held.has_value()) return std::nullopt;
  return static_cast<double>(worker_held->total() + server_held->total());
}

std::vector<ExchangePoint> ExchangePointsOf(const ExperimentResults& results) {
  const ExperimentPlan& plan = results.plan;
  std::vector<ExchangePoint> points;
  for (size_t i = 0; i < plan.cases.size(); ++i) {
    const PlannedCase& one = plan.cases[i];
    const std::optional<ExchangeCase> exchange = ExchangeCaseOf(one.config);
    if (!exchange.has_value()) continue;
    ExchangePoint point{.exchange = *exchange,
                        .workers = one.config.cluster().workers(),
                        .link = HasLinks(one.place) ? one.place.testbed().link() : kNoLink,
                        .step_ms = results.SpreadOf(one, "step_time"),
                        .link_mb = results.SpreadOf(one, "one_way_bytes"),
                        .link_cost = LinkCostOf(plan.file, one, *exchange)};
    const std::string name = LabelsSetting(plan, one, kExchangeFields);
    point.name = name.empty() ? one.name : name;
    point.group = NamedValues(
        plan, one, [&](size_t axis) { return !SetsAny(plan.axes[axis], kExchangeFields); });
    if (const auto pushed = results.SpreadOf(one, "pushed_bytes")) {
      point.model_bytes = pushed->median * kMega / point.workers;
    }
    if (point.link_cost.has_value() && point.model_bytes > 0) {
      point.cost =
          CostOfExchange(point.exchange, point.workers, point.model_bytes, *point.link_cost);
    }
    TakeFirstRepeat(results, i, point);
    points.push_back(std::move(point));
  }
  return points;
}

std::vector<std::vector<const ExchangePoint*>> GroupsOf(const std::vector<ExchangePoint>& points) {
  std::vector<std::vector<const ExchangePoint*>> groups;
  for (const ExchangePoint& point : points) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& other) {
      return other.front()->group == point.group;
    });
    if (group == groups.end()) group = groups.emplace(groups.end());
    group->push_back(&point);
  }
  return groups;
}

std::vector<const ExchangePoint*> MemoryPoints(const std::vector<ExchangePoint>& points) {
  std::vector<const ExchangePoint*> first;
  for (const ExchangePoint& point : points) {
    if (!point.worker_held.has_value()) continue;
    if (std::none_of(first.begin(), first.end(),
                     [&](const ExchangePoint* other) { return other->name == point.name; })) {
      first.push_back(&point);
    }
  }
  return first;
}

}  // namespace tug
