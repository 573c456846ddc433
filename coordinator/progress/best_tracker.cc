// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/best_tracker.h"

#include <cmath>

namespace tug {

BestTracker::BestTracker(const JobConfig& config, std::optional<BestCheckpoint> best)
    : enabled_(config.checkpoint().keep_best()),
      eval_interval_(config.train().eval_interval()),
      best_(best) {}

void BestTracker::BeginTimeline() {
  newest_eval_ = 0;
  losses_.clear();
  committed_.clear();
}

// An evaluation at the end of the job is that of the newest checkpoint, which is kept anyway.
bool BestTracker::WillBeEvaluated(uint64_t version) const {
  return version > newest_eval_ && eval_interval_ > 0 && version % eval_interval_ == 0;
}

bool BestTracker::MayBecomeBest(uint64_t version) const {
  return enabled_ && (WillBeEvaluated(version) || losses_.contains(version));
}

std::vector<uint64_t> BestTracker::HeldBeside(uint64_t version) const {
  std::vector<uint64_t> held;
  for (const uint64_t other : committed_) {
    if (other != version && WillBeEvaluated(other)) held.push_back(other);
  }
  return held;
}

std::optional<BestCheckpoint> BestTracker::OnCommitted(uint64_t version) {
  if (!enabled_) return std::nullopt;
  committed_.insert(version);
  if (committed_.size() > kMaxOpen) committed_.erase(committed_.begin());
  return Match(version);
}

std::optional<BestCheckpoint> BestTracker::AddEval(const EvalMetrics& eval) {
  if (!enabled_) return std::nullopt;
  newest_eval_ = eval.version;
  if (!std::isfinite(eval.loss)) return std::nullopt;
  losses_[eval.version] = eval.loss;
  if (losses_.size() > kMaxOpen) losses_.erase(losses_.begin());
  return Match(eval.version);
}

std::optional<BestCheckpoint> BestTracker::Match(uint64_t version) {
  const auto loss = losses_.find(version);
  if (loss == losses_.end() || !committed_.contains(version)) return std::nullopt;
  const bool same = best_.has_value() && best_->version == version;
  if (best_.has_value() && !same && best_->loss <= loss->second) return std::nullopt;
  if (same && best_->loss == loss->second) return std::nullopt;
  best_ = BestCheckpoint{version, loss->second};
  return best_;
}

}  // namespace tug
