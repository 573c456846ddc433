// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONTROL_JOIN_JOB_H_
#define TUG_CONTROL_JOIN_JOB_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/control_client.h"
#include "control/node_core.h"

namespace tug {

// Registers a node. If the job is full it waits, as long as the coordinator allows
// (coordinator/membership/membership.h): the node it replaces may be gone but not yet declared
// lost. It asks several times a second, and logs once that it waits. Retries for `timeout` if the
// coordinator dies in the meantime or has no thread for the call. Returns no value if the job is
// done, which is logged: a supervisor must not take that for a failure. Errors: the coordinator's
// refusal; UNAVAILABLE. Blocks.
absl::StatusOr<std::optional<RegisterReply>> JoinJob(ControlClient& client,
                                                     const RegisterRequest& request,
                                                     absl::Duration timeout = kJoinTimeout);

}  // namespace tug

#endif  // TUG_CONTROL_JOIN_JOB_H_
