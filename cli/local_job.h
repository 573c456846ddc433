#ifndef TUG_CLI_LOCAL_JOB_H_
#define TUG_CLI_LOCAL_JOB_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/job_security.h"
#include "cli/launcher.h"
#include "cli/network_host.h"
#include "proto/join_job.h"

namespace tug {

inline constexpr int kMostQuickDeaths = 3;

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
  // For the coordinator to end a job one of whose nodes has exited with an error.
  absl::Duration report_time = absl::Seconds(4);
  // Of a process, after its start: it may die again of the same.
  absl::Duration quick_death = absl::Seconds(5);
  // How long a node tries to join before it exits with an error: it never was a member then.
  absl::Duration join_time = kJoinTimeout;
  // For nodes to exit after the job has ended.
  absl::Duration exit_time = absl::Seconds(5);
  // For a coordinator elsewhere whose connection is lost to end the job in order: kEndTime of
  // `tug attend`, and a second.
  absl::Duration lost_time = absl::Seconds(7);
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
//  - SIGINT, SIGTERM or SIGHUP: the coordinator ends the job in order; another one, a second or
//    more later, kills everything. With interrupt_is_error the error is CANCELLED, "interrupted",
//    whenever it came; before there is a job it always is CANCELLED.
//  - A node killed by a signal, or whose connection is lost: another is started in its place, with
//    its name, and the job goes on (fault.on_worker_loss, fault.max_rollbacks); a line says so. A
//    server in place of another is a spare one: it gets a place only if one is free. A node that
//    left the job is not replaced, unless the job waited for it: then it exits with an error. A
//    node that exits with an error: first the coordinator has report_time to end the job with its
//    own message, which says more.
//  - The coordinator killed by a signal: another one takes the job up, at the same address; a line
//    says so. Nodes go on meanwhile. One whose connection is lost may live: its host ends the job
//    in order, and it is not taken up.
//  - A process that dies kMostQuickDeaths times in a row within quick_death of its start, or exits
//    with an error within join_time and quick_death, ends the job: everything is killed at once.
// Errors: ABORTED, naming process, cause and the checkpoint to resume from; with an empty message
// when the coordinator has said it to us already. REQUIRES: the process has one thread.
absl::Status RunLocalJob(const LocalJob& job);

}  // namespace tug

#endif  // TUG_CLI_LOCAL_JOB_H_
