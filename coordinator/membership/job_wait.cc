// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/job_wait.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tug {

void WaitWatch::See(const std::optional<WaitReason>& reason, uint64_t step, double step_seconds,
                    absl::Time now) {
  // A wait for nodes does not count toward a step's time.
  if (reason.has_value() || step != step_ || !step_since_.has_value()) {
    step_ = step;
    step_since_ = now;
  }
  std::optional<WaitReason> seen = reason;
  const absl::Duration patience =
      std::max(stall_patience_, absl::Seconds(kSlowSteps * step_seconds));
  const bool stalled = now - *step_since_ >= patience;
  if (!seen.has_value() && stalled) {
    seen = WaitReason{WaitReason::Kind::kStep, absl::StrCat("step ", step + 1),
                      "no node is missing; tug status shows the activity of each"};
  }
  const bool same = seen.has_value() && reason_.has_value() && seen->kind == reason_->kind;
  if (!same) since_ = stalled && !reason.has_value() ? *step_since_ : now;
  reason_ = std::move(seen);
}

}  // namespace tug
