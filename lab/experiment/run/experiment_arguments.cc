// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/run/experiment_arguments.h"

#include "absl/strings/str_format.h"

namespace tug {

absl::Status CheckNumber(const char* option, double value, double least, double most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s %.12g is out of range: give %g to %g", option, value, least, most));
}

}  // namespace tug
