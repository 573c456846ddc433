// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/job_end.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "config/sync_mode.h"

namespace tug {
namespace {

uint64_t Begun(std::span<const VirtualWorkerPace> paces) {
  uint64_t sum = 0;
  for (const VirtualWorkerPace& pace : paces) sum += pace.begun;
  return sum;
}

// Step times of virtual workers; for those without a report the mean of the others; 1 if there are
// no reports at all (only ratios matter).
std::vector<double> StepSeconds(std::span<const VirtualWorkerPace> paces) {
  double sum = 0;
  size_t known = 0;
  for (const VirtualWorkerPace& pace : paces) {
    sum += pace.step_seconds;
    known += pace.step_seconds > 0 ? 1 : 0;
  }
  std::vector<double> seconds;
  for (const VirtualWorkerPace& pace : paces) {
    const double mean = known > 0 ? sum / static_cast<double>(known) : 1.0;
    seconds.push_back(pace.step_seconds > 0 ? pace.step_seconds : mean);
  }
  return seconds;
}

std::vector<uint64_t> DealByLevel(std::span<const VirtualWorkerPace> paces, uint64_t total) {
  const auto at_level = [&](uint64_t level) {
    uint64_t sum = 0;
    for (const VirtualWorkerPace& pace : paces) sum += std::max(pace.begun, level);
    return sum;
  };
  uint64_t low = 0, high = total + 1;  // at_level(low) <= total < at_level(high)
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (at_level(middle) <= total ? low : high) = middle;
  }
  std::vector<uint64_t> clocks;
  for (const VirtualWorkerPace& pace : paces) clocks.push_back(std::max(pace.begun, low));
  uint64_t left = total - at_level(low);
  for (size_t v = 0; v < paces.size() && left > 0; ++v) {
    if (clocks[v] > low) continue;
    ++clocks[v];
    --left;
  }
  return clocks;
}

std::vector<uint64_t> DealBySpeed(std::span<const VirtualWorkerPace> paces, uint64_t total) {
  const std::vector<double> step_seconds = StepSeconds(paces);
  // More than all remaining steps would exceed the total anyway.
  const uint64_t most = total - Begun(paces) + 1;
  const auto after = [&](size_t v, double seconds) {
    const double steps = std::floor(seconds / step_seconds[v]);
    return paces[v].begun +
           (steps < static_cast<double>(most) ? static_cast<uint64_t>(steps) : most);
  };
  const auto sum_after = [&](double seconds) {
    uint64_t sum = 0;
    for (size_t v = 0; v < paces.size(); ++v) sum += after(v, seconds);
    return sum;
  };
  // Upper bound: the fastest could take all remaining steps alone.
  double low = 0, high = *std::ranges::min_element(step_seconds);
  high *= static_cast<double>(most);
  constexpr int kHalvings = 100;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (sum_after(middle) <= total ? low : high) = middle;
  }
  std::vector<uint64_t> clocks;
  for (size_t v = 0; v < paces.size(); ++v) clocks.push_back(after(v, low));
  // The rest, which ties (equal end times) leave: one by one to the earliest end.
  for (uint64_t left = total - sum_after(low); left > 0; --left) {
    size_t next = 0;
    const auto end = [&](size_t v) {
      return static_cast<double>(clocks[v] + 1 - paces[v].begun) * step_seconds[v];
    };
    for (size_t v = 1; v < paces.size(); ++v) {
      if (end(v) < end(next)) next = v;
    }
    ++clocks[next];
  }
  return clocks;
}

}  // namespace

std::vector<uint64_t> DealClocks(std::span<const VirtualWorkerPace> paces, uint64_t total,
                                 uint64_t max_lead) {
  std::vector<VirtualWorkerPace> takers;
  uint64_t idle = 0;  // clocks of virtual workers that get no further step
  for (const VirtualWorkerPace& pace : paces) {
    if (pace.away) {
      idle += pace.begun;
    } else {
      takers.push_back(pace);
    }
  }
  std::vector<uint64_t> dealt;
  if (!takers.empty()) {
    const uint64_t all = std::max(total > idle ? total - idle : 0, Begun(takers));
    dealt = max_lead < kMaxLead ? DealByLevel(takers, all) : DealBySpeed(takers, all);
  }
  std::vector<uint64_t> clocks;
  auto next = dealt.begin();
  for (const VirtualWorkerPace& pace : paces) clocks.push_back(pace.away ? pace.begun : *next++);
  return clocks;
}

JobEnd::JobEnd(const JobConfig& config, uint64_t start_version)
    : max_lead_(StalenessBound(config.sync())),
      start_(start_version),
      steps_(config.train().steps()),
      order_seconds_(3e-3 * config.fault().heartbeat_ms()) {
  TUG_CHECK_LT(start_version, steps_);
  if (!max_lead_.has_value()) final_version_ = steps_;
}

void JobEnd::RequestStop() {
  if (stop_requested_) return;
  stop_requested_ = true;
  if (!final_clocks_.empty()) return;  // the end is near anyway
  final_version_.reset();
  pausing_ = true;
}

bool JobEnd::IsNear(std::span<const VirtualWorkerPace> paces) const {
  return std::ranges::any_of(paces, [&](const VirtualWorkerPace& pace) {
    const double meanwhile = pace.step_seconds > 0 ? order_seconds_ / pace.step_seconds : 0;
    return static_cast<double>(pace.reported) + meanwhile + 1 >= static_cast<double>(steps_);
  });
}

void JobEnd::Update(std::span<const VirtualWorkerPace> paces, bool all_paused) {
  if (final_version_.has_value() || paces.empty()) return;
  pausing_ = pausing_ || IsNear(paces);
  if (!pausing_ || !all_paused) return;
  pausing_ = false;
  if (max_lead_.has_value()) return SettleClocks(paces);
  const auto latest = std::ranges::max_element(paces, {}, &VirtualWorkerPace::begun);
  final_version_ = std::min(latest->begun, steps_);
}

void JobEnd::SettleClocks(std::span<const VirtualWorkerPace> paces) {
  const uint64_t count = paces.size();
  const uint64_t begun_steps = (Begun(paces) + count - 1) / count;
  const bool any = std::ranges::any_of(paces, [](const auto& pace) { return !pace.idle; });
  // A resumed run repeats some steps, so the clocks begun may add up to less than its start.
  const uint64_t least = !stop_requested_ ? steps_ : any ? start_ + 1 : start_;
  final_version_ = any ? std::max(begun_steps, least) : least;
  final_clocks_ = DealClocks(paces, *final_version_ * count, *max_lead_);
}

}  // namespace tug
