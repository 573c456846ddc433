// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_WATCH_ENDED_RUN_H_
#define TUG_CLI_WATCH_ENDED_RUN_H_

#include <string>

#include "absl/status/statusor.h"

namespace tug {

// Whether a run folder's job is over: no coordinator is registered there. A coordinator that was
// killed is still registered.
bool HasEnded(const std::string& run_dir);

// Lines of `tug status` for a run that has ended, from the files of its folder: how it ended, its
// losses, and the commands for it. Errors: those of its configuration.
absl::StatusOr<std::string> EndedRunText(const std::string& run_dir);

}  // namespace tug

#endif  // TUG_CLI_WATCH_ENDED_RUN_H_
