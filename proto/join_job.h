#ifndef TUG_PROTO_JOIN_JOB_H_
#define TUG_PROTO_JOIN_JOB_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/control_client.h"
#include "proto/node_core.h"

namespace tug {

// Registers a node. Where the job is full it waits, as long as the coordinator lets it
// (coordinator/membership.h): the one in whose place it was started may be gone without having been
// missed yet. It asks several times a second, and says once that it waits. A coordinator that dies
// meanwhile, or has no thread for the call, is asked again for `timeout`. No value: the job is
// done, and a line says so; to a supervisor such a node must not look like one that fails. Errors:
// the coordinator's refusal; UNAVAILABLE. Blocks.
absl::StatusOr<std::optional<RegisterReply>> JoinJob(ControlClient& client,
                                                     const RegisterRequest& request,
                                                     absl::Duration timeout = kJoinTimeout);

}  // namespace tug

#endif  // TUG_PROTO_JOIN_JOB_H_
