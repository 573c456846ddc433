// SPDX-License-Identifier: Apache-2.0
#include "worker/core/due_residuals.h"

#include <algorithm>
#include <optional>

namespace tug {

bool DueResiduals::OnWeights(uint64_t version) {
  weights_version_ = std::max(weights_version_, version);
  return !options_.mode.VersionAt(version).has_value();
}

std::vector<uint64_t> DueResiduals::AtClock(uint32_t virtual_worker, uint64_t clock,
                                            uint64_t final_version) {
  if (const std::optional<uint64_t> version = options_.mode.VersionAt(clock)) {
    return Pass(virtual_worker, *version, final_version);
  }
  const uint64_t version =
      final_version > 0 ? std::min(weights_version_, final_version - 1) : weights_version_;
  return Pass(virtual_worker, version, 0);
}

std::vector<uint64_t> DueResiduals::Pass(uint32_t virtual_worker, uint64_t version,
                                         uint64_t final_version) {
  Passed& passed =
      passed_.try_emplace(virtual_worker, Passed{options_.start_version, options_.start_version})
          .first->second;
  std::vector<uint64_t> due;
  if (options_.interval > 0 && version > passed.version) {
    const uint64_t newest = version / options_.interval;
    const uint64_t first =
        std::max(passed.version / options_.interval, newest - std::min(newest, kMost));
    for (uint64_t i = first + 1; i <= newest; ++i) due.push_back(i * options_.interval);
  }
  const uint64_t newest = due.empty() ? passed.newest_due : due.back();
  // The final version may have been passed before it was known to be final.
  if (final_version <= version && final_version > newest) due.push_back(final_version);
  passed.version = std::max(passed.version, version);
  if (!due.empty()) passed.newest_due = due.back();
  return due;
}

}  // namespace tug
