// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace tug {

Progress::Progress(const Options& options)
    : collector_(options.start_clocks.empty()
                     ? StepsByClock(options.virtual_workers, options.start_version)
                     : StepsByArrival(options.start_clocks, options.start_version)),
      completed_(options.start_version),
      away_(options.virtual_workers) {
  TUG_CHECK_GE(options.virtual_workers, 1u);
}

void Progress::AddStep(uint32_t node_id, const StepReport& report) {
  if (report.virtual_worker() >= away_.size()) return;
  collector_->Add(node_id, report);
  CompleteSteps();
}

void Progress::SetLost(uint32_t virtual_worker, uint64_t clock) {
  if (virtual_worker >= away_.size()) return;
  collector_->SetLost(virtual_worker, clock);
  CompleteSteps();
}

void Progress::SetAway(uint32_t virtual_worker, bool away) {
  if (virtual_worker >= away_.size()) return;
  away_[virtual_worker] = away;
  collector_->SetAway(virtual_worker, away);
  CompleteSteps();
  CompleteEvals(open_evals_.begin(), open_evals_.end());
}

void Progress::CompleteSteps() {
  while (std::optional<StepMetrics> metrics = collector_->NextStep()) {
    completed_ = metrics->step;
    if (!std::isnan(metrics->loss)) loss_ = metrics->loss;
    recent_.push_back(*metrics);
    if (recent_.size() > kRateSteps) recent_.pop_front();
    steps_.push_back(*std::move(metrics));
  }
}

void Progress::AddEval(const EvalReport& report) {
  if (report.virtual_worker() >= away_.size()) return;
  // Evaluations complete in order, so an older one is a repeat.
  const EvalKey key{report.version(), report.final()};
  if (newest_eval_.has_value() && key <= newest_eval_key_) return;
  const size_t most = std::max(kMaxOpenEvals, kMaxOpenEvalShares / away_.size());
  if (!open_evals_.contains(key) && open_evals_.size() >= most) return;
  OpenEval& open = open_evals_[key];
  open.shares.resize(away_.size());
  std::optional<EvalReport>& share = open.shares[report.virtual_worker()];
  if (share.has_value()) return;
  share = report;
  CompleteEvals(open_evals_.find(key), std::next(open_evals_.find(key)));
}

void Progress::CompleteEvals(OpenEvals::iterator eval, OpenEvals::iterator end) {
  const auto is_whole = [&](const OpenEval& open) {
    for (size_t v = 0; v < away_.size(); ++v) {
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
    // Older ones can no longer complete: in a stopped job some workers may skip an evaluation
    // during training in favour of the final one, of the same version.
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
    if (!share.has_value()) continue;  // no share: the virtual worker is away
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
