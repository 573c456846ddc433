// SPDX-License-Identifier: Apache-2.0
#include "base/clock_offset.h"

#include <cstdlib>

namespace tug {

void ClockOffset::Add(int64_t sent_ns, int64_t answered_ns, int64_t received_ns) {
  if (received_ns < sent_ns) return;
  const int64_t way_ns = (received_ns - sent_ns + 1) / 2;
  const int64_t middle_ns = sent_ns + way_ns;
  samples_.push_back({middle_ns, {answered_ns - middle_ns, way_ns}});
  if (samples_.size() > kSamples) samples_.pop_front();
}

std::optional<ClockOffset::Estimate> ClockOffset::At(int64_t now_ns) const {
  std::optional<Estimate> best;
  for (const Sample& sample : samples_) {
    const int64_t age_ns = std::abs(now_ns - sample.at_ns);
    const int64_t error_ns = sample.estimate.error_ns + age_ns / 1'000'000 * kDriftPpm;
    if (best.has_value() && best->error_ns <= error_ns) continue;
    best = Estimate{sample.estimate.offset_ns, error_ns};
  }
  return best;
}

}  // namespace tug
