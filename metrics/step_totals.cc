// SPDX-License-Identifier: Apache-2.0
#include "metrics/step_totals.h"

#include <algorithm>

namespace tug {
namespace {

// Only one thread adds, so a separate load and store lose no update.
template <typename Number>
void Increase(std::atomic<Number>& sum, Number by) {
  sum.store(sum.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace

void StepTotals::Add(const Step& step) {
  const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), step.seconds);
  Increase<uint64_t>(counts_[static_cast<size_t>(bound - kBounds.begin())], 1);
  Increase(seconds_, step.seconds);
  Increase(compute_seconds_, step.compute_seconds);
  Increase(wait_seconds_, step.wait_seconds);
  Increase(communication_seconds_, step.communication_seconds);
  Increase(straggle_seconds_, step.straggle_seconds);
  Increase(tokens_, step.tokens);
}

StepTotals::Figures StepTotals::figures() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  Figures figures;
  figures.seconds = {.bounds = kBounds, .sum = seconds_.load(kRelaxed)};
  for (const std::atomic<uint64_t>& count : counts_) {
    figures.seconds.counts.push_back(count.load(kRelaxed));
  }
  figures.compute_seconds = compute_seconds_.load(kRelaxed);
  figures.wait_seconds = wait_seconds_.load(kRelaxed);
  figures.communication_seconds = communication_seconds_.load(kRelaxed);
  figures.straggle_seconds = straggle_seconds_.load(kRelaxed);
  figures.tokens = tokens_.load(kRelaxed);
  return figures;
}

}  // namespace tug
