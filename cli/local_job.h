#ifndef TUG_CLI_LOCAL_JOB_H_
#define TUG_CLI_LOCAL_JOB_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/job_security.h"
#include "cli/launcher.h"
#include "cli/network_host.h"
#include "launch/supervisor_core.h"
#include "proto/control_client.h"
#include "proto/join_job.h"

namespace tug {

// Where a coordinator finds a job file that it gets as its input.
inline constexpr char kJobOnInput[] = "/dev/stdin";

// A job whose processes are all children of ours: they run on this machine, or stand for those that
// run elsewhere.
struct LocalJob {
  std::string executable;  // tug itself
  std::string job_file;
  // What was read of it, which the coordinator gets through memory; none: it reads job_file.
  std::optional<std::string> job_text;
  std::vector<std::string> overrides;
  std::string resume;   // may be empty
  std::string run_dir;  // may be empty
  uint32_t servers = 1;
  uint32_t workers = 1;
  uint32_t spare_servers = 0;  // beside `servers`
  JobSecurity security;        // settled by RunLocalJob
  // By process: its affinity mask, by which it knows what it may use; none, or empty: ours.
  std::vector<std::vector<int>> server_cores;
  std::vector<std::vector<int>> worker_cores;
  // Servers, then workers, are dealt to these, a host each, and again from the first one when there
  // are no more; the coordinator is on the first. None: all are where we are, and use loopback.
  std::vector<NetworkHost> hosts;
  // Workers are dealt first: as many servers as there are workers are beside them, the others on
  // the hosts that are left, or on all where none is.
  bool beside_workers = false;
  // By process, where they are not dealt so; empty: they are.
  std::vector<NetworkHost> server_hosts;
  std::vector<NetworkHost> worker_hosts;
  // Makes of a program that is to run on its `host` one that runs here and stands for it: shows
  // what it says, passes SIGINT on to it, kills it at SIGTERM, and ends as it does (cli/attach.h).
  // None: hosts are network namespaces of this machine.
  std::function<absl::StatusOr<Program>(const Program& program, const std::string& run_dir)>
      elsewhere;
  std::string log_folder;  // of the nodes; empty: RUN/logs
  // That resumes it, without --resume; empty: `tug train` with job_file and `overrides`.
  std::vector<std::string> command;
  std::string coordinator_log;  // what it says is appended to this file; empty: it says it to us
  // The last call of a node that tries to join may begin just before its time is over.
  SupervisorOptions supervision = {.join_time = kJoinTimeout + kControlCallTimeout};
  // Whoever runs several jobs has to know that the user wanted to end; one job that ended in order
  // is a success.
  bool interrupt_is_error = false;
  // Whether the job goes on without a node that leaves. If not, nodes on this host ignore SIGTERM
  // and end with the job, since SIGTERM may reach all processes of a job at once.
  bool nodes_may_leave = true;
};

// Starts the coordinator on a free port, then servers and workers (their output goes to RUN/logs/),
// and sees the job to its end. A job whose processes listen elsewhere than on loopback has keys:
// the user's, or some that are made for it, which a file in the run folder holds while it runs;
// processes get them through memory (Program::keys). Workers that are to compute on GPUs share
// those of their machine (cli/gpu_share.h). No process is left when it returns; of those elsewhere
// none whose connection holds.
// What ends the job and which process starts again: launch/supervisor_core.h. SIGINT, SIGTERM and
// SIGHUP are its interrupts; with interrupt_is_error the error is CANCELLED, "interrupted",
// whenever one came; before there is a job it always is CANCELLED. A line says when a process is
// replaced. Errors: ABORTED, naming process, cause and the checkpoint to resume from; with an empty
// message when the coordinator has said it to us already. REQUIRES: the process has one thread.
absl::Status RunLocalJob(const LocalJob& job);

}  // namespace tug

#endif  // TUG_CLI_LOCAL_JOB_H_
