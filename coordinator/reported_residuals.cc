#include "coordinator/reported_residuals.h"

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
  std::vector<uint32_t> gone;
  double squares = 0;
  for (uint32_t v = 0; v < residuals_.size(); ++v) {
    Residual& residual = residuals_[v];
    const bool stays = v < owners.size() && owners[v] == node_id;
    if (residual.node_id != node_id || residual.squares == 0 || stays) continue;
    gone.push_back(v);
    squares += residual.squares;
    residual = {};
  }
  if (gone.empty()) return "";
  return absl::StrFormat("what pushes of virtual worker%s %s had left out: norm %.3g",
                         gone.size() == 1 ? "" : "s", absl::StrJoin(gone, ", "),
                         std::sqrt(squares));
}

}  // namespace tug
