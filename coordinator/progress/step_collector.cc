// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/step_collector.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

namespace tug {
namespace {

// Sanitises a reported time: one value that is not finite would stay in the mean.
std::optional<double> PlausibleSeconds(double seconds) {
  constexpr double kLeast = 1e-6, kMost = 1e6;
  if (!std::isfinite(seconds) || seconds <= 0) return std::nullopt;
  return std::clamp(seconds, kLeast, kMost);
}

class ClockSteps final : public StepCollector {
 public:
  ClockSteps(uint32_t virtual_workers, uint64_t start_version)
      : away_(virtual_workers), completed_(start_version) {}

  void Add(uint32_t node_id, const StepReport& report) override {
    SetDone(report.virtual_worker(), report.clock(), StepShare{node_id, report});
  }
  void SetLost(uint32_t virtual_worker, uint64_t clock) override {
    const uint64_t end = std::min(clock, completed_ + kMaxOpenSteps);
    for (uint64_t lost = completed_; lost < end; ++lost) {
      SetDone(virtual_worker, lost, std::nullopt);
    }
  }
  void SetAway(uint32_t virtual_worker, bool away) override { away_[virtual_worker] = away; }

  std::optional<StepMetrics> NextStep() override {
    if (open_.empty() || !IsComplete(open_.front())) return std::nullopt;
    std::vector<StepShare> shares;
    for (std::optional<StepShare>& each : open_.front().shares) {
      if (each.has_value()) shares.push_back(*std::move(each));
    }
    open_.pop_front();
    return FoldStep(++completed_, shares);
  }

  std::optional<OwnPace> pace(uint32_t) const override { return std::nullopt; }

 private:
  struct OpenStep {
    std::vector<bool> is_done;  // by virtual worker: it has reported, or never will
    std::vector<std::optional<StepShare>> shares;
  };

  void SetDone(uint32_t virtual_worker, uint64_t clock, std::optional<StepShare> share) {
    if (clock < completed_ || clock - completed_ >= kMaxOpenSteps) return;
    const size_t slot = clock - completed_;
    if (slot >= open_.size()) open_.resize(slot + 1);
    OpenStep& open = open_[slot];
    open.is_done.resize(away_.size());
    open.shares.resize(away_.size());
    if (open.is_done[virtual_worker]) return;
    open.is_done[virtual_worker] = true;
    open.shares[virtual_worker] = std::move(share);
  }
  // Whether all virtual workers that are not away have done it.
  bool IsComplete(const OpenStep& open) const {
    for (size_t v = 0; v < away_.size(); ++v) {
      if (open.is_done.empty() || (!open.is_done[v] && !away_[v])) return false;
    }
    return true;
  }

  std::vector<bool> away_;     // by virtual worker
  std::deque<OpenStep> open_;  // clocks completed_, completed_ + 1, ...
  uint64_t completed_;
};

class ArrivalSteps final : public StepCollector {
 public:
  ArrivalSteps(const std::vector<uint64_t>& clocks, uint64_t start_version)
      : completed_(start_version) {
    for (const uint64_t clock : clocks) {
      paces_.push_back({.clock = clock});
      clocks_ += clock;
    }
  }

  // A worker reports a virtual worker's steps in order, so a skipped clock is lost.
  void Add(uint32_t node_id, const StepReport& report) override {
    OwnPace& pace = paces_[report.virtual_worker()];
    if (report.clock() < pace.clock || report.clock() - pace.clock >= kMaxOpenSteps) return;
    clocks_ += report.clock() + 1 - pace.clock;
    pace.clock = report.clock() + 1;
    constexpr double kNewest = 0.2;  // weight of the newest report
    if (const std::optional<double> seconds = PlausibleSeconds(report.step_seconds())) {
      pace.seconds =
          pace.seconds == 0 ? *seconds : (1 - kNewest) * pace.seconds + kNewest * *seconds;
    }
    arrived_.push_back({node_id, report});
    // A resumed job repeats some steps before it reaches new ones: keeps the newest reports only.
    if (arrived_.size() > paces_.size()) arrived_.erase(arrived_.begin());
  }
  void SetLost(uint32_t virtual_worker, uint64_t clock) override {
    OwnPace& pace = paces_[virtual_worker];
    if (clock <= pace.clock || clock - pace.clock > kMaxOpenSteps) return;
    clocks_ += clock - pace.clock;
    pace.clock = clock;
  }
  void SetAway(uint32_t, bool) override {}  // steps never wait for a particular virtual worker

  std::optional<StepMetrics> NextStep() override {
    if (clocks_ / paces_.size() <= completed_) return std::nullopt;
    StepMetrics metrics = FoldStep(++completed_, arrived_);
    metrics.seconds = metrics.mean_seconds;
    arrived_.clear();
    return metrics;
  }

  std::optional<OwnPace> pace(uint32_t virtual_worker) const override {
    return paces_[virtual_worker];
  }

 private:
  std::vector<OwnPace> paces_;      // by virtual worker
  uint64_t clocks_ = 0;             // sum of their clocks
  std::vector<StepShare> arrived_;  // since the last complete step
  uint64_t completed_;
};

}  // namespace

std::unique_ptr<StepCollector> StepsByClock(uint32_t virtual_workers, uint64_t start_version) {
  return std::make_unique<ClockSteps>(virtual_workers, start_version);
}

std::unique_ptr<StepCollector> StepsByArrival(const std::vector<uint64_t>& clocks,
                                              uint64_t start_version) {
  return std::make_unique<ArrivalSteps>(clocks, start_version);
}

}  // namespace tug
