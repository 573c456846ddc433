// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/link_measurement.h"

#include <algorithm>
#include <iterator>

#include "base/status_macros.h"
#include "limits/bench_stats.h"

namespace tug {
namespace {

constexpr uint64_t kMaxCalls = 10000;
constexpr uint64_t kTrialCalls = 5;  // trial calls, to determine the calls per run
constexpr uint64_t kSumBytes = 1 << 20;

}  // namespace

uint64_t CallsIn(double wanted_seconds, double seconds_of_one) {
  return std::clamp<uint64_t>(static_cast<uint64_t>(wanted_seconds / seconds_of_one), 1, kMaxCalls);
}

absl::StatusOr<LinkMeasurement> MeasureLink(CollectiveRanks& ranks, double seconds, int runs) {
  std::vector<uint64_t> calls;
  for (const uint64_t bytes : kLinkBytes) {
    ASSIGN_OR_RETURN(const double once, ranks.TimeNeighbours(bytes, kTrialCalls));
    calls.push_back(CallsIn(seconds, once));
  }
  ASSIGN_OR_RETURN(const double sum_once, ranks.TimeSum(kSumBytes, kTrialCalls));
  std::vector<std::vector<double>> times(std::size(kLinkBytes));
  std::vector<double> sums;
  for (int run = 0; run < runs; ++run) {
    for (size_t i = 0; i < std::size(kLinkBytes); ++i) {
      ASSIGN_OR_RETURN(times[i].emplace_back(), ranks.TimeNeighbours(kLinkBytes[i], calls[i]));
    }
    ASSIGN_OR_RETURN(sums.emplace_back(), ranks.TimeSum(kSumBytes, CallsIn(seconds, sum_once)));
  }
  LinkMeasurement measured;
  for (size_t i = 0; i < std::size(kLinkBytes); ++i) {
    measured.messages.push_back({kLinkBytes[i], SpreadOf(times[i]).median});
  }
  measured.cost = FitLink(measured.messages);
  measured.cost.gamma = SpreadOf(sums).median / kSumBytes;
  return measured;
}

}  // namespace tug
