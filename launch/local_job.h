// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_LOCAL_JOB_H_
#define TUG_LAUNCH_LOCAL_JOB_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/control_client.h"
#include "control/join_job.h"
#include "launch/job_security.h"
#include "launch/launcher.h"
#include "launch/supervisor_core.h"
#include "process/network_host.h"

namespace tug {

// Path at which a coordinator reads a job file passed as its input.
inline constexpr char kJobOnInput[] = "/dev/stdin";

// A job whose processes are all children of ours: they run on this machine, or represent processes
// on other hosts.
struct LocalJob {
  std::string executable;  // tug itself
  std::string job_file;
  // Content of the job file, passed to the coordinator through memory; empty: it reads job_file.
  std::optional<std::string> job_text;
  std::vector<std::string> overrides;
  std::string resume;   // may be empty
  std::string run_dir;  // may be empty
  uint32_t servers = 1;
  uint32_t workers = 1;
  uint32_t spare_servers = 0;  // in addition to `servers`
  JobSecurity security;        // settled by RunLocalJob
  // Affinity mask of each process, which determines its budget; empty: ours.
  std::vector<std::vector<int>> server_cores;
  std::vector<std::vector<int>> worker_cores;
  // Servers, then workers, are assigned to these in turn, one per host, starting over after the
  // last; the coordinator gets the first. Empty: all processes run here and use loopback.
  std::vector<NetworkHost> hosts;
  // Assigns workers first: each worker's host also gets a server, as far as there are servers;
  // other servers go to the remaining hosts, or to all if none remains.
  bool beside_workers = false;
  // Host of each process, instead of the above; empty: assigned as above.
  std::vector<NetworkHost> server_hosts;
  std::vector<NetworkHost> worker_hosts;
  // Converts a program for another `host` into a local one that represents it: prints its output,
  // forwards SIGINT, kills it on SIGTERM, and exits like it (launch/attach.h). Empty: hosts are
  // network namespaces of this machine.
  std::function<absl::StatusOr<Program>(const Program& program, const std::string& run_dir)>
      elsewhere;
  std::string log_folder;  // for the nodes; empty: RUN/logs
  // Whether RUN/logs/launcher.log gets the start and end of each process, if the run folder is
  // visible here. One job of a process can have this log.
  bool keeps_log = false;
  // Command that resumes the job, without --resume; empty: `tug train` with job_file and
  // `overrides`.
  std::vector<std::string> command;
  std::string coordinator_log;  // receives the coordinator's output (appended); empty: ours
  // A node that tries to join may begin its last call just before its time is over.
  SupervisorOptions supervision = {.join_time = kJoinTimeout + kControlCallTimeout};
  // An interrupt is an error, for callers that run several jobs and must stop; otherwise an
  // interrupted job that ends in order is a success.
  bool interrupt_is_error = false;
  // Whether the job continues without a node that leaves. If not, nodes on this host ignore SIGTERM
  // and end with the job, since SIGTERM may reach all processes of a job at once.
  bool nodes_may_leave = true;
};

// Starts the coordinator on a free port, then servers and workers (output in RUN/logs/), and
// supervises the job until its end. A job whose processes listen on addresses other than loopback
// has keys unless its security.mode is NONE: the user's, or new ones, which are kept in a file of
// the run folder while it runs; processes get them through memory (Program::keys). Workers with
// GPUs share those of their machine (launch/gpu_share.h). On return no local process is left, and
// no remote one with a working connection. launch/supervisor_core.h defines what ends the job and
// which processes are restarted. SIGINT, SIGTERM and SIGHUP interrupt it. With interrupt_is_error
// any interrupt gives CANCELLED, "interrupted"; an interrupt before the job has started always
// does. Prints a line when a process is replaced. Errors: ABORTED, naming process, cause and the
// checkpoint to resume from; with an empty message if the coordinator has already printed it.
// REQUIRES: the process has one thread.
absl::Status RunLocalJob(const LocalJob& job);

}  // namespace tug

#endif  // TUG_LAUNCH_LOCAL_JOB_H_
