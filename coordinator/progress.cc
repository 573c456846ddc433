#include "coordinator/progress.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"

namespace tug {

Progress::Progress(uint32_t virtual_workers, uint64_t start_version)
    : virtual_workers_(virtual_workers), next_clock_(start_version) {
  TUG_CHECK_GE(virtual_workers, 1u);
}

void Progress::AddStep(uint32_t node_id, const StepReport& report) {
  if (report.virtual_worker() >= virtual_workers_ || report.clock() < next_clock_ ||
      report.clock() - next_clock_ >= kMaxOpenSteps) {
    return;
  }
  const size_t slot = report.clock() - next_clock_;
  if (slot >= open_steps_.size()) open_steps_.resize(slot + 1);
  OpenStep& open = open_steps_[slot];
  open.shares.resize(virtual_workers_);
  Share& share = open.shares[report.virtual_worker()];
  if (share.reported) return;
  share = {true, node_id, report};
  ++open.reported;

  while (!open_steps_.empty() && open_steps_.front().reported == virtual_workers_) {
    steps_.push_back(Fold(open_steps_.front()));
    loss_ = steps_.back().loss;
    recent_.push_back(steps_.back());
    if (recent_.size() > kRateSteps) recent_.pop_front();
    open_steps_.pop_front();
    ++next_clock_;
  }
}

StepMetrics Progress::Fold(const OpenStep& open) const {
  StepMetrics metrics;
  metrics.step = next_clock_ + 1;
  metrics.schedule = open.shares.front().report.schedule();
  double loss_sum = 0;
  std::set<uint32_t> nodes;
  for (const Share& share : open.shares) {
    const StepReport& report = share.report;
    if (metrics.schedule != report.schedule()) metrics.schedule.reset();
    loss_sum += report.loss_sum();
    metrics.tokens += report.tokens();
    metrics.targets += report.targets();
    metrics.seconds = std::max(metrics.seconds, report.step_seconds());
    metrics.wait_seconds = std::max(metrics.wait_seconds, report.wait_seconds());
    metrics.compute_seconds = std::max(metrics.compute_seconds, report.compute_seconds());
    metrics.communication_seconds =
        std::max(metrics.communication_seconds, report.communication_seconds());
    if (report.communication_seconds() > 0) {
      const double hidden = 1 - report.wait_seconds() / report.communication_seconds();
      metrics.overlap = std::min(metrics.overlap, std::clamp(hidden, 0.0, 1.0));
    }
    if (nodes.insert(share.node_id).second) {
      metrics.pushed_bytes += report.pushed_bytes();
      metrics.pulled_bytes += report.pulled_bytes();
      metrics.mean_seconds += report.step_seconds();
      metrics.mean_wait_seconds += report.wait_seconds();
    }
  }
  const auto workers = static_cast<double>(nodes.size());
  metrics.mean_seconds /= workers;
  metrics.mean_wait_seconds /= workers;
  metrics.loss = metrics.targets == 0 ? 0 : loss_sum / static_cast<double>(metrics.targets);
  return metrics;
}

void Progress::AddEval(const EvalReport& report) {
  if (report.virtual_worker() >= virtual_workers_) return;
  // Evaluations complete in order: an older one is a repeat.
  const EvalKey key{report.version(), report.final()};
  if (newest_eval_.has_value() && key <= newest_eval_key_) return;
  if (!open_evals_.contains(key) && open_evals_.size() >= kMaxOpenEvals) return;
  OpenEval& open = open_evals_[key];
  open.shares.resize(virtual_workers_);
  std::optional<EvalReport>& share = open.shares[report.virtual_worker()];
  if (share.has_value()) return;
  share = report;
  if (++open.reported < virtual_workers_) return;
  evals_.push_back(Fold(key, open));
  newest_eval_ = evals_.back();
  newest_eval_key_ = key;
  // What is older can no longer become whole: a job that is stopped may skip, in some workers, the
  // evaluation during training for the last one, of the same version.
  open_evals_.erase(open_evals_.begin(), open_evals_.upper_bound(key));
}

EvalMetrics Progress::Fold(const EvalKey& key, const OpenEval& open) const {
  EvalMetrics metrics;
  metrics.version = key.first;
  metrics.final = key.second;
  double loss_sum = 0;
  uint64_t correct = 0;
  for (const std::optional<EvalReport>& share : open.shares) {
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
