#include "experiment/exchange_sample.h"

#include <utility>

namespace tug {
namespace {

constexpr uint32_t kWorkers = 4;
constexpr uint64_t kSteps = 10;
constexpr LinkCost kLink = {.alpha = 1e-4, .beta = 1 / (25e6 * 1448 / 1514), .gamma = 0};

NodeFigures Node(uint32_t number, bool server, const ExchangeCase& exchange, double bytes) {
  const auto part = [&](double of) { return static_cast<uint64_t>(bytes * of); };
  NodeFigures node{.node_id = number + 1, .server = server, .socket_bytes = part(1), .held = {}};
  if (server) {
    const bool all = exchange.row().exchange == JobConfig::ALL_REDUCE;
    const double share = all ? 1 : 1.0 / exchange.Servers(kWorkers);
    node.held = {.weights = part(share), .optimizer = part(2 * share), .sums = part(share)};
  } else {
    const bool frees =
        exchange.kind == ExchangeKind::kZero2 || exchange.kind == ExchangeKind::kZero3;
    node.held = {.weights = part(exchange.kind == ExchangeKind::kZero3 ? 0.2 : 1),
                 .gradients = part(frees ? 0.2 : 1)};
  }
  node.held.predicted = node.held.total();
  return node;
}

ExchangeRun Run(const ExchangeCase& exchange, const std::string& link, double bytes) {
  ExchangeRun run{.exchange = exchange,
                  .link = link,
                  .bits_per_second = link == "none" ? 0 : 200e6,
                  .planned_bytes = bytes,
                  .workers = kWorkers,
                  .warm_up = 2};
  const ExchangeCost cost = CostOfExchange(exchange, kWorkers, bytes, kLink);
  const double seconds = link == "none" ? bytes * 2e-9 : cost.seconds * 1.1;
  for (uint64_t step = 1; step <= kSteps; ++step) {
    const double factor = step <= run.warm_up ? 10 : step == 5 ? 1.5 : 1;
    run.figures.steps.push_back({.step = step,
                                 .step_seconds = seconds * factor,
                                 .wait_seconds = seconds * factor * 0.9,
                                 .pushed_bytes = static_cast<uint64_t>(bytes) * kWorkers});
  }
  for (uint32_t i = 0; i < exchange.Servers(kWorkers); ++i) {
    run.figures.nodes.push_back(Node(i, true, exchange, bytes));
  }
  for (uint32_t i = 0; i < kWorkers; ++i) {
    run.figures.nodes.push_back(Node(exchange.Servers(kWorkers) + i, false, exchange, bytes));
  }
  if (link == "none") return run;
  for (uint32_t host = 0; host < exchange.Hosts(kWorkers); ++host) {
    const HostBytes& of = exchange.HasServerAlone(host, kWorkers) ? cost.server : cost.worker;
    run.hosts.push_back({static_cast<uint64_t>(of.sends * kSteps * 1.05),
                         static_cast<uint64_t>(of.receives * kSteps * 1.05)});
  }
  return run;
}

}  // namespace

ExchangeResults SampleExchangeResults() {
  ExchangeResults results{.command = "tug --set a='<&>'",
                          .settings = {{"jo<b", "4 workers & more"}},
                          .workers = kWorkers,
                          .alpha_seconds = kLink.alpha,
                          .link_names = {"none", "200mbit"},
                          .sizes = {4e6, 16e6}};
  for (const std::string& text : AllExchangeCases(kWorkers)) {
    results.cases.push_back(ParseExchangeCase(text).value_or(ExchangeCase{}));
  }
  for (const std::string& link : results.link_names) {
    for (const double size : results.sizes) {
      for (const ExchangeCase& exchange : results.cases) {
        ExchangeRun run = Run(exchange, link, size);
        if (exchange.name == "zero2" && link != "none" && size > 4e6) {
          run.figures = {};
          run.hosts.clear();
          run.error = "worker-1: said <no>";
        }
        results.runs.push_back(std::move(run));
      }
    }
  }
  return results;
}

}  // namespace tug
