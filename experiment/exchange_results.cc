#include "experiment/exchange_results.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/median.h"
#include "experiment/link_plan.h"

namespace tug {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<double> Measured(const ExchangeRun& run, double StepPoint::*member) {
  std::vector<double> values;
  for (const StepPoint& point : StepsAfter(run.figures, run.warm_up)) {
    values.push_back(point.*member);
  }
  return values;
}

std::optional<double> PerStep(const ExchangeRun& run, size_t host, uint64_t LinkTraffic::*member) {
  if (host >= run.hosts.size() || run.figures.steps.empty()) return std::nullopt;
  return static_cast<double>(run.hosts[host].*member) /
         static_cast<double>(run.figures.steps.back().step);
}

// Of the workers, or the servers, the one that held most.
std::optional<HeldBytes> MostHeld(const ExchangeRun& run, bool server) {
  std::optional<HeldBytes> most;
  for (const NodeFigures& node : run.figures.nodes) {
    if (node.server != server || node.held.total() == 0) continue;
    if (!most.has_value() || node.held.total() > most->total()) most = node.held;
  }
  return most;
}

}  // namespace

double ExchangeRun::StepSeconds() const {
  return Median(Measured(*this, &StepPoint::step_seconds));
}

double ExchangeRun::LeastStepSeconds() const {
  const std::vector<double> steps = Measured(*this, &StepPoint::step_seconds);
  return steps.empty() ? kNaN : *std::min_element(steps.begin(), steps.end());
}

double ExchangeRun::MostStepSeconds() const {
  const std::vector<double> steps = Measured(*this, &StepPoint::step_seconds);
  return steps.empty() ? kNaN : *std::max_element(steps.begin(), steps.end());
}

double ExchangeRun::WaitSeconds() const {
  return Median(Measured(*this, &StepPoint::wait_seconds));
}

double ExchangeRun::ModelBytes() const {
  if (planned_bytes > 0) return planned_bytes;
  std::vector<double> pushed;
  for (const StepPoint& point : StepsAfter(figures, warm_up)) {
    pushed.push_back(static_cast<double>(point.pushed_bytes) / workers);
  }
  return Median(std::move(pushed));
}

std::optional<double> ExchangeRun::HostSentBytes(size_t host) const {
  return PerStep(*this, host, &LinkTraffic::sent_bytes);
}

std::optional<double> ExchangeRun::HostReceivedBytes(size_t host) const {
  return PerStep(*this, host, &LinkTraffic::received_bytes);
}

std::optional<double> ExchangeRun::BusiestBytes() const {
  std::optional<double> most;
  for (size_t host = 0; host < hosts.size(); ++host) {
    for (const auto& bytes : {HostSentBytes(host), HostReceivedBytes(host)}) {
      if (bytes.has_value() && bytes > most) most = bytes;
    }
  }
  return most;
}

std::optional<HeldBytes> ExchangeRun::WorkerHeld() const { return MostHeld(*this, false); }

std::optional<HeldBytes> ExchangeRun::ServerHeld() const { return MostHeld(*this, true); }

const ExchangeRun* ExchangeResults::Find(const ExchangeCase& exchange, const std::string& link,
                                         double planned_bytes) const {
  for (const ExchangeRun& run : runs) {
    if (run.exchange == exchange && run.link == link && run.planned_bytes == planned_bytes) {
      return &run;
    }
  }
  return nullptr;
}

std::optional<LinkCost> ExchangeResults::CostOf(const std::string& link) const {
  for (const ExchangeRun& run : runs) {
    if (run.link != link || run.bits_per_second == 0) continue;
    return LinkCost{.alpha = alpha_seconds, .beta = 1 / PayloadBytesPerSecond(run.bits_per_second)};
  }
  return std::nullopt;
}

std::optional<ExchangeCost> ExchangeResults::CostOf(const ExchangeRun& run) const {
  const std::optional<LinkCost> link = CostOf(run.link);
  const double bytes = run.ModelBytes();
  if (!link.has_value() || !(bytes > 0)) return std::nullopt;
  return CostOfExchange(run.exchange, run.workers, bytes, *link);
}

const ExchangeRun* ExchangeResults::Fastest(const std::string& link, double planned_bytes) const {
  const ExchangeRun* fastest = nullptr;
  for (const ExchangeRun& run : runs) {
    if (run.link != link || run.planned_bytes != planned_bytes || !(run.StepSeconds() > 0)) {
      continue;
    }
    if (fastest == nullptr || run.StepSeconds() < fastest->StepSeconds()) fastest = &run;
  }
  return fastest;
}

const ExchangeRun* MemoryRun(const ExchangeResults& results, const ExchangeCase& exchange) {
  if (results.sizes.empty()) return nullptr;
  const double largest = *std::max_element(results.sizes.begin(), results.sizes.end());
  for (const std::string& link : results.link_names) {
    const ExchangeRun* run = results.Find(exchange, link, largest);
    if (run != nullptr && run->WorkerHeld().has_value()) return run;
  }
  return nullptr;
}

std::optional<double> HeldOnHost(const ExchangeRun& run) {
  const std::optional<HeldBytes> worker = run.WorkerHeld(), server = run.ServerHeld();
  if (!worker.has_value() || (run.exchange.BesideWorkers() && !server.has_value())) {
    return std::nullopt;
  }
  const uint64_t beside = run.exchange.BesideWorkers() ? server->total() : 0;
  return static_cast<double>(worker->total() + beside);
}

}  // namespace tug
