// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_DAEMON_H_
#define TUG_SERVER_DAEMON_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/leave_signal.h"
#include "security/job_keys.h"

namespace tug {

struct ServerOptions {
  std::string coordinator;  // "host:port"
  // Address or interface that lanes listen on; its address is announced to workers.
  std::string listen_host = "127.0.0.1";
  bool spare = false;             // standby until another server is lost or leaves
  std::optional<uint32_t> index;  // wished, in the process's name; none: any
  JobKeys keys;
  // Armed once the job is known; outlives the call. Null: signals end the process.
  LeaveSignal* leave = nullptr;
};

// Runs a server process: joins the job and runs its lanes until the job ends. OK: the job has
// finished, or continues without this server. Errors: one line with a remedy (coordinator
// unreachable or refused, job failed). Blocks. One per process.
absl::Status RunServer(const ServerOptions& options);

}  // namespace tug

#endif  // TUG_SERVER_DAEMON_H_
