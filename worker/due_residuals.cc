#include "worker/due_residuals.h"

#include <algorithm>

namespace tug {

std::vector<uint64_t> DueResiduals::Pass(uint32_t virtual_worker, uint64_t version,
                                         uint64_t final_version) {
  Passed& passed =
      passed_.try_emplace(virtual_worker, Passed{start_version_, start_version_}).first->second;
  std::vector<uint64_t> due;
  if (interval_ > 0 && version > passed.version) {
    const uint64_t newest = version / interval_;
    const uint64_t first = std::max(passed.version / interval_, newest - std::min(newest, kMost));
    for (uint64_t i = first + 1; i <= newest; ++i) due.push_back(i * interval_);
  }
  const uint64_t newest = due.empty() ? passed.newest_due : due.back();
  // It may have been passed before it was known to be the last.
  if (final_version <= version && final_version > newest) due.push_back(final_version);
  passed.version = std::max(passed.version, version);
  if (!due.empty()) passed.newest_due = due.back();
  return due;
}

}  // namespace tug
