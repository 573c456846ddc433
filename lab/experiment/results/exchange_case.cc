// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/exchange_case.h"

namespace tug {

std::optional<ExchangeCase> ExchangeCaseOf(const JobConfig& config) {
  const uint32_t servers = config.cluster().servers(), workers = config.cluster().workers();
  if (config.exchange() == JobConfig::ALL_REDUCE) {
    switch (config.collective().algorithm()) {
      case CollectiveConfig::RING:
        return ExchangeCase{ExchangeKind::kRing};
      case CollectiveConfig::HALVING_DOUBLING:
        return ExchangeCase{ExchangeKind::kHalvingDoubling};
      default:
        return std::nullopt;
    }
  }
  switch (config.placement().kind()) {
    case PlacementConfig::ZERO1:
      return ExchangeCase{ExchangeKind::kZero1};
    case PlacementConfig::ZERO2:
      return ExchangeCase{ExchangeKind::kZero2};
    case PlacementConfig::ZERO3:
      return ExchangeCase{ExchangeKind::kZero3};
    case PlacementConfig::MIXED:
      if (servers <= workers) return std::nullopt;
      return ExchangeCase{ExchangeKind::kMixed, servers - workers};
    default:
      return ExchangeCase{ExchangeKind::kServers, servers};
  }
}

}  // namespace tug
