// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/run_history.h"

#include <algorithm>

namespace tug {
namespace {

constexpr double kLinkSeconds = 1;

}  // namespace

void RunHistory::OnStep(const StepMetrics& metrics, double at_seconds) {
  absl::MutexLock lock(&mutex_);
  step_ = metrics.step;
  const ThinnedCurve::Added added = curve_.Add({.step = metrics.step,
                                                .at_seconds = at_seconds,
                                                .loss = metrics.loss,
                                                .seconds = metrics.mean_seconds,
                                                .tokens = static_cast<double>(metrics.tokens)});
  if (added == ThinnedCurve::Added::kOthers) {
    anew_ = ++newest_;
    point_numbers_.assign(curve_.points().size(), newest_);
  } else if (added == ThinnedCurve::Added::kNewPoint) {
    point_numbers_.push_back(++newest_);
  }
  StepTimes times{metrics.step, metrics.workers};
  if (times.workers.size() > kMaxWorkers) times.workers.resize(kMaxWorkers);
  while (!steps_.empty() && steps_.back().part.step >= metrics.step) {
    steps_.pop_back();
    anew_ = newest_ + 1;
  }
  Append(steps_, std::move(times), kSteps);
}

// Beyond kMaxEvals every second evaluation is dropped.
void RunHistory::OnEval(const EvalMetrics& metrics) {
  absl::MutexLock lock(&mutex_);
  const auto is_void = [&](const Eval& eval) {
    return eval.step > metrics.version || (eval.step == metrics.version && !metrics.final);
  };
  while (!evals_.empty() && is_void(evals_.back().part)) {
    evals_.pop_back();
    anew_ = newest_ + 1;
  }
  Append(evals_, Eval{metrics.version, metrics.loss, metrics.final}, kMaxEvals + 1);
  if (evals_.size() <= kMaxEvals) return;
  size_t kept = 0;
  for (size_t i = 1; i < evals_.size(); i += 2) evals_[kept++] = evals_[i];
  if (evals_.size() % 2 == 1) evals_[kept++] = evals_.back();
  evals_.resize(kept);
  anew_ = ++newest_;
}

void RunHistory::OnEvent(const std::string& text, double at_seconds) {
  absl::MutexLock lock(&mutex_);
  Append(events_, Event{at_seconds, step_, text.substr(0, kEventBytes)}, kEventLimit);
}

void RunHistory::OnSettings(const SettingsChange& change) {
  absl::MutexLock lock(&mutex_);
  Append(settings_, change, kMaxSettings);
}

void RunHistory::OnStatus(const StatusReply& status, double at_seconds) {
  absl::MutexLock lock(&mutex_);
  if (!links_.empty() && at_seconds < links_.back().part.at_seconds + kLinkSeconds) return;
  LinkSample sample;
  sample.at_seconds = at_seconds;
  for (const NodeStatus& node : status.nodes()) {
    if (sample.nodes.size() == kMaxNodes) break;
    sample.nodes.push_back({.node = node.node_id(),
                            .sockets = node.socket_bytes_per_second(),
                            .shared_memory = node.shared_memory_bytes_per_second()});
  }
  Append(links_, std::move(sample), kLinkSamples);
}

RunHistory::News RunHistory::Since(uint64_t since) const {
  absl::MutexLock lock(&mutex_);
  News news;
  news.newest = newest_;
  // An unknown number comes from an earlier coordinator.
  news.anew = since < anew_ || since > newest_ || since == 0;
  const uint64_t from = news.anew ? 0 : since;
  const auto take = [from](const auto& parts, auto& taken) {
    for (const auto& numbered : parts) {
      if (numbered.number > from) taken.push_back(numbered.part);
    }
  };
  const auto first = std::upper_bound(point_numbers_.begin(), point_numbers_.end(), from);
  news.points.assign(curve_.points().begin() + (first - point_numbers_.begin()),
                     curve_.points().end());
  news.open = curve_.open();
  take(evals_, news.evals);
  take(events_, news.events);
  take(steps_, news.steps);
  take(links_, news.links);
  take(settings_, news.settings);
  return news;
}

}  // namespace tug
