#ifndef TUG_SERVER_DAEMON_H_
#define TUG_SERVER_DAEMON_H_

#include <string>

#include "absl/status/status.h"
#include "base/leave_signal.h"
#include "security/job_keys.h"

namespace tug {

struct ServerOptions {
  std::string coordinator;  // "host:port"
  // Address or interface that lanes listen on; also the address that workers are told.
  std::string listen_host = "127.0.0.1";
  bool spare = false;  // stands by until another server is lost
  JobKeys keys;        // of the job
  // Armed once the job is known; outlives the call. Null: signals end the process.
  LeaveSignal* leave = nullptr;
};

// A server process: joins the job, runs its lanes until the job ends. OK: the job is done, or goes
// on without it. Errors:
// one line with what to do (coordinator not reachable, refused, job failed). Blocks; one per
// process.
absl::Status RunServer(const ServerOptions& options);

}  // namespace tug

#endif  // TUG_SERVER_DAEMON_H_
