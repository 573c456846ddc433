// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/exchange_cost.h"

#include <algorithm>

#include "base/check.h"
#include "plan/strategy.h"

namespace tug {
namespace {

// REQUIRES: a kind that plan/strategy.h has.
Strategy StrategyOf(ExchangeKind kind) {
  switch (kind) {
    case ExchangeKind::kServers:
      return Strategy::kParameterServer;
    case ExchangeKind::kRing:
      return Strategy::kRing;
    case ExchangeKind::kHalvingDoubling:
      return Strategy::kHalvingDoubling;
    case ExchangeKind::kZero1:
      return Strategy::kZero1;
    case ExchangeKind::kZero2:
      return Strategy::kZero2;
    case ExchangeKind::kZero3:
      return Strategy::kZero3;
    case ExchangeKind::kMixed:
      break;
  }
  TUG_CHECK(false) << "mixed has a formula of its own";
  return Strategy::kParameterServer;
}

ExchangeCost CostOfMixed(uint32_t workers, uint32_t extra, double bytes, const LinkCost& link) {
  const MixedParts parts = BytePsParts(workers, extra);
  const double n = workers;
  const double of_worker = (1 - parts.beside) + (n - 1) * parts.beside;
  const double of_server = n * parts.alone;
  const double of_phase = std::max({1 - parts.beside, (n - 1) * parts.beside, of_server});
  const double without_bytes = 2 * (n + extra - 1) * link.alpha +
                               n * std::max(parts.beside, parts.alone) * bytes * link.gamma;
  ExchangeCost cost;
  cost.worker = {of_worker * bytes, of_worker * bytes};
  cost.server = {of_server * bytes, of_server * bytes};
  cost.seconds = without_bytes + 2 * of_phase * bytes * link.beta;
  cost.overlapped_seconds = without_bytes + cost.BusiestBytes() * link.beta;
  return cost;
}

}  // namespace

double ExchangeCost::BusiestBytes() const {
  return std::max({worker.sends, worker.receives, server.sends, server.receives});
}

MixedParts BytePsParts(uint32_t workers, uint32_t extra) {
  TUG_CHECK(workers >= 2 && extra >= 1);
  if (extra >= workers) return {.beside = 0, .alone = 1.0 / extra};
  const double n = workers, k = extra;
  const double all = n * n + k * n - 2 * k;
  return {.beside = (n - k) / all, .alone = 2 * (n - 1) / all};
}

ExchangeCost CostOfExchange(const ExchangeCase& exchange, uint32_t workers, double bytes,
                            const LinkCost& link) {
  TUG_CHECK(workers >= 2);
  if (exchange.kind == ExchangeKind::kMixed) {
    return CostOfMixed(workers, exchange.count, bytes, link);
  }
  const StrategyRow& row = RowOf(StrategyOf(exchange.kind));
  const Exchange step = {.gradient_bytes = bytes,
                         .weight_bytes = bytes,
                         .workers = workers,
                         .servers = std::max(exchange.count, 1u)};
  const StepTraffic traffic = row.traffic(step);
  ExchangeCost cost;
  cost.worker = {traffic.sends, traffic.receives};
  cost.server = {traffic.server_sends, traffic.server_receives};
  cost.seconds = row.seconds(step, link);
  const LinkCost without_bytes = {.alpha = link.alpha, .beta = 0, .gamma = link.gamma};
  cost.overlapped_seconds = row.seconds(step, without_bytes) + cost.BusiestBytes() * link.beta;
  return cost;
}

double LecturesHeldBytes(const ExchangeCase& exchange, uint32_t workers, double model_bytes) {
  const double parameters = model_bytes / sizeof(float);
  if (exchange.kind == ExchangeKind::kMixed) {
    const WorkerShare share = RowOf(Strategy::kZero1).share(kFullPrecision);
    return (share.whole + share.divided * BytePsParts(workers, exchange.count).beside) * parameters;
  }
  return RowOf(StrategyOf(exchange.kind)).share(kFullPrecision).Bytes(parameters, workers);
}

}  // namespace tug
