#include "coordinator/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace tug {
namespace {

// What comes from a worker is not believed: one figure that is not finite would stay in the mean.
std::optional<double> PlausibleSeconds(double seconds) {
  constexpr double kLeast = 1e-6, kMost = 1e6;
  if (!std::isfinite(seconds) || seconds <= 0) return std::nullopt;
  return std::clamp(seconds, kLeast, kMost);
}

}  // namespace

Progress::Progress(Options options)
    : options_(std::move(options)),
      completed_(options_.start_version),
      away_(options_.virtual_workers) {
  TUG_CHECK_GE(options_.virtual_workers, 1u);
  if (!options_.update_per_push) return;
  paces_.resize(options_.virtual_workers, {.clock = options_.start_version});
  for (size_t v = 0; v < std::min(paces_.size(), options_.start_clocks.size()); ++v) {
    paces_[v].clock = options_.start_clocks[v];
  }
  for (const Pace& pace : paces_) clocks_ += pace.clock;
}

void Progress::AddStep(uint32_t node_id, const StepReport& report) {
  if (report.virtual_worker() >= options_.virtual_workers) return;
  if (options_.update_per_push) return AddInOrder(node_id, report);
  AddByClock(report.virtual_worker(), report.clock(), StepShare{node_id, report});
}

void Progress::SetLost(uint32_t virtual_worker, uint64_t clock) {
  if (virtual_worker >= options_.virtual_workers) return;
  if (options_.update_per_push) {
    Pace& pace = paces_[virtual_worker];
    if (clock <= pace.clock || clock - pace.clock > kMaxOpenSteps) return;
    clocks_ += clock - pace.clock;
    pace.clock = clock;
    return CompleteInOrder();
  }
  const uint64_t end = std::min(clock, completed_ + kMaxOpenSteps);
  for (uint64_t lost = completed_; lost < end; ++lost) {
    AddByClock(virtual_worker, lost, std::nullopt);
  }
}

void Progress::SetAway(uint32_t virtual_worker, bool away) {
  if (virtual_worker >= options_.virtual_workers) return;
  away_[virtual_worker] = away;
  CompleteByClock();
  CompleteEvals(open_evals_.begin(), open_evals_.end());
}

void Progress::AddByClock(uint32_t virtual_worker, uint64_t clock, std::optional<StepShare> share) {
  if (clock < completed_ || clock - completed_ >= kMaxOpenSteps) return;
  const size_t slot = clock - completed_;
  if (slot >= open_steps_.size()) open_steps_.resize(slot + 1);
  OpenStep& open = open_steps_[slot];
  open.is_done.resize(options_.virtual_workers);
  open.shares.resize(options_.virtual_workers);
  if (open.is_done[virtual_worker]) return;
  open.is_done[virtual_worker] = true;
  open.shares[virtual_worker] = std::move(share);
  ++open.done;
  CompleteByClock();
}

void Progress::CompleteByClock() {
  const auto is_done = [&](const OpenStep& open) {
    if (open.done == options_.virtual_workers) return true;
    for (uint32_t v = 0; v < options_.virtual_workers; ++v) {
      if (open.is_done.empty() || (!open.is_done[v] && !away_[v])) return false;
    }
    return true;
  };
  while (!open_steps_.empty() && is_done(open_steps_.front())) {
    std::vector<StepShare> shares;
    for (std::optional<StepShare>& each : open_steps_.front().shares) {
      if (each.has_value()) shares.push_back(*std::move(each));
    }
    Complete(shares);
    open_steps_.pop_front();
  }
}

// A worker reports a virtual worker's steps in order, so a clock that is left out is lost.
void Progress::AddInOrder(uint32_t node_id, const StepReport& report) {
  Pace& pace = paces_[report.virtual_worker()];
  if (report.clock() < pace.clock || report.clock() - pace.clock >= kMaxOpenSteps) return;
  clocks_ += report.clock() + 1 - pace.clock;
  pace.clock = report.clock() + 1;
  constexpr double kNewest = 0.2;  // weight of the newest report
  if (const std::optional<double> seconds = PlausibleSeconds(report.step_seconds())) {
    pace.seconds = pace.seconds == 0 ? *seconds : (1 - kNewest) * pace.seconds + kNewest * *seconds;
  }
  arrived_.push_back({node_id, report});
  // A resumed job takes some steps again before it is where it was.
  if (arrived_.size() > options_.virtual_workers) arrived_.erase(arrived_.begin());
  CompleteInOrder();
}

void Progress::CompleteInOrder() {
  while (clocks_ / options_.virtual_workers > completed_) {
    Complete(arrived_);
    arrived_.clear();
  }
}

void Progress::Complete(std::span<const StepShare> shares) {
  StepMetrics metrics = FoldStep(completed_ + 1, shares);
  if (options_.update_per_push) metrics.seconds = metrics.mean_seconds;
  ++completed_;
  if (!std::isnan(metrics.loss)) loss_ = metrics.loss;
  recent_.push_back(metrics);
  if (recent_.size() > kRateSteps) recent_.pop_front();
  steps_.push_back(std::move(metrics));
}

void Progress::AddEval(const EvalReport& report) {
  if (report.virtual_worker() >= options_.virtual_workers) return;
  // Evaluations complete in order: an older one is a repeat.
  const EvalKey key{report.version(), report.final()};
  if (newest_eval_.has_value() && key <= newest_eval_key_) return;
  const size_t most = std::max(kMaxOpenEvals, kMaxOpenEvalShares / options_.virtual_workers);
  if (!open_evals_.contains(key) && open_evals_.size() >= most) return;
  OpenEval& open = open_evals_[key];
  open.shares.resize(options_.virtual_workers);
  std::optional<EvalReport>& share = open.shares[report.virtual_worker()];
  if (share.has_value()) return;
  share = report;
  CompleteEvals(open_evals_.find(key), std::next(open_evals_.find(key)));
}

void Progress::CompleteEvals(OpenEvals::iterator eval, OpenEvals::iterator end) {
  const auto is_whole = [&](const OpenEval& open) {
    for (uint32_t v = 0; v < options_.virtual_workers; ++v) {
      if (!open.shares[v].has_value() && !away_[v]) return false;
    }
    return true;
  };
  while (eval != end) {
    if (!is_whole(eval->second)) {
      ++eval;
      continue;
    }
    evals_.push_back(Fold(eval->first, eval->second));
    newest_eval_ = evals_.back();
    newest_eval_key_ = eval->first;
    // What is older can no longer become whole: a job that is stopped may skip, in some workers,
    // the evaluation during training for the last one, of the same version.
    eval = open_evals_.erase(open_evals_.begin(), std::next(eval));
  }
}

EvalMetrics Progress::Fold(const EvalKey& key, const OpenEval& open) const {
  EvalMetrics metrics;
  metrics.version = key.first;
  metrics.final = key.second;
  double loss_sum = 0;
  uint64_t correct = 0;
  for (const std::optional<EvalReport>& share : open.shares) {
    if (!share.has_value()) continue;  // of one that is away
    loss_sum += share->loss_sum();
    metrics.targets += share->targets();
    correct += share->correct();
  }
  if (metrics.targets == 0) return metrics;
  metrics.loss = loss_sum / static_cast<double>(metrics.targets);
  metrics.accuracy = static_cast<double>(correct) / static_cast<double>(metrics.targets);
  return metrics;
}

std::vector<StepMetrics> Progress::TakeSteps() { return std::exchange(steps_, {}); }

std::vector<EvalMetrics> Progress::TakeEvals() { return std::exchange(evals_, {}); }

double Progress::tokens_per_second() const {
  double tokens = 0;
  double seconds = 0;
  for (const StepMetrics& metrics : recent_) {
    tokens += static_cast<double>(metrics.tokens);
    seconds += metrics.seconds;
  }
  return seconds > 0 ? tokens / seconds : 0;
}

double Progress::seconds_per_step() const {
  double seconds = 0;
  for (const StepMetrics& metrics : recent_) seconds += metrics.seconds;
  return recent_.empty() ? 0 : seconds / static_cast<double>(recent_.size());
}

}  // namespace tug
