// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/reported_residuals.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace tug {

void ReportedResiduals::Add(uint32_t node_id, const StepReport& report) {
  const uint32_t virtual_worker = report.virtual_worker();
  if (report.skipped()) return;
  const double squares = report.residual_squares();
  const bool some = std::isfinite(squares) && squares > 0;
  if (virtual_worker >= residuals_.size()) {
    if (!some) return;
    residuals_.resize(virtual_worker + 1);
  }
  residuals_[virtual_worker] = {node_id, some ? squares : 0};
}

std::string ReportedResiduals::Take(uint32_t node_id, std::span<const uint32_t> owners) {
  return TakeWhere([&](uint32_t v) {
    return residuals_[v].node_id == node_id && (v >= owners.size() || owners[v] != node_id);
  });
}

std::string ReportedResiduals::TakeAllBut(std::span<const uint32_t> virtual_workers) {
  return TakeWhere(
      [&](uint32_t v) { return std::ranges::find(virtual_workers, v) == virtual_workers.end(); });
}

template <typename Goes>
std::string ReportedResiduals::TakeWhere(Goes goes) {
  std::vector<uint32_t> gone;
  double squares = 0;
  for (uint32_t v = 0; v < residuals_.size(); ++v) {
    Residual& residual = residuals_[v];
    if (residual.squares == 0 || !goes(v)) continue;
    gone.push_back(v);
    squares += residual.squares;
    residual = {};
  }
  if (gone.empty()) return "";
  return absl::StrFormat("error-feedback residuals of virtual worker%s %s (norm %.3g)",
                         gone.size() == 1 ? "" : "s", absl::StrJoin(gone, ", "),
                         std::sqrt(squares));
}

}  // namespace tug
