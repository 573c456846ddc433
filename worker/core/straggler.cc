// SPDX-License-Identifier: Apache-2.0
#include "worker/core/straggler.h"

#include <cmath>

#include "base/philox.h"

namespace tug {

Straggler::Straggler(const JobConfig& config) : config_(config.straggler()), seed_(config.seed()) {}

absl::Duration Straggler::Slowdown(uint32_t virtual_worker, absl::Duration taken) const {
  if (virtual_worker != config_.virtual_worker() || config_.slowdown() <= 1) {
    return absl::ZeroDuration();
  }
  return (config_.slowdown() - 1) * taken;
}

absl::Duration Straggler::Pause(uint64_t clock, uint32_t virtual_worker) const {
  if (config_.pause_probability() <= 0) return absl::ZeroDuration();
  const std::array<uint32_t, 4> bits =
      Philox4x32({static_cast<uint32_t>(clock), static_cast<uint32_t>(clock >> 32), virtual_worker,
                  static_cast<uint32_t>(seed_ >> 32)},
                 {static_cast<uint32_t>(seed_), static_cast<uint32_t>(RandomPurpose::kStraggle)});
  if (UniformFromBits(bits[0]) >= config_.pause_probability()) return absl::ZeroDuration();
  return absl::Milliseconds(-config_.pause_ms() * std::log(UniformFromBits(bits[1])));
}

}  // namespace tug
