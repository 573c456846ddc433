#include "cli/experiment_links.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "experiment/link_plan.h"

namespace tug {

absl::StatusOr<PlannedLink> ParsePlannedLink(const std::string& text) {
  PlannedLink link{.name = text};
  if (text == kNoLink) return link;
  absl::StatusOr<double> rate = ParseLinkRate(text);
  if (!rate.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--links ", text, ": none, or ", rate.status().message()));
  }
  link.bits_per_second = *rate;
  return link;
}

absl::Status LinkedHosts::Take(const PlannedLink& link) {
  if (hosts_ == 0 || link == link_) return absl::OkStatus();
  testbed_.reset();
  link_ = {};
  if (link.bits_per_second == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(testbed_, Testbed::Up(hosts_, link.name));
  link_ = link;
  return absl::OkStatus();
}

}  // namespace tug
