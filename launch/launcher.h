// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_LAUNCHER_H_
#define TUG_LAUNCH_LAUNCHER_H_

#include <signal.h>
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/time_source.h"

namespace tug {

struct Program {
  std::string name;               // for messages: "worker-0"
  std::vector<std::string> argv;  // argv[0] is a path, or a name to look up in PATH
  // Receives stdout and stderr (appended); empty: inherits ours. A missing folder is created.
  std::string log_path;
  int keep_fd = -1;         // stays open in the child, with the same number
  int input_fd = -1;        // stdin; -1: /dev/null
  int output_fd = -1;       // stdout, and stderr without error_fd
  int error_fd = -1;        // stderr
  std::vector<int> cores;   // affinity mask of the child; empty: ours
  std::string host;         // network host to run in (process/network_host.h); empty: ours
  bool writes_log = false;  // the program writes log_path itself and inherits stdout and stderr
  // Text of a key file, passed in memory through TUG_KEYS; empty: inherits TUG_KEYS.
  std::string keys;
  bool outlives_us = false;  // survives if our process is killed; it sees the end of its input
  // Ignores SIGTERM and SIGHUP from its start, as do processes it starts.
  bool ignores_stop = false;
};

// A child that ended.
struct Ended {
  std::string name;
  pid_t pid = 0;
  int wait_status = 0;  // from waitpid; exit code 1 if unknown
  std::string log_path;
  bool writes_log = false;  // Program's
  absl::Time at;            // when the launcher noticed the exit
  // Other code of this process reaped it, or the kernel did because SIGCHLD is ignored.
  bool status_unknown = false;

  bool exited_with_zero() const;
  bool killed_by_signal() const;
  // Represents a program on another host, whose connection is lost (launch/attach.h).
  bool connection_lost() const;
  // "worker-0 (pid 17)"; "worker-0" if it represents a program on another host.
  std::string Who() const;
  // "exited with code 3", "was killed by signal 9 (Killed)", "is gone: connection to b lost" or
  // "ended with an unknown status"
  std::string How() const;
};

// Result of Wait; empty: the deadline passed.
struct LaunchEvent {
  std::optional<Ended> ended;
  bool interrupted = false;  // SIGINT, SIGTERM or SIGHUP reached us
  int signal = 0;            // SIGINT, or SIGTERM for the other two
  pid_t sender = 0;          // process that sent it
};

// Starts child processes and leaves none running: its destructor kills and reaps them, and the
// kernel kills them if our process is killed (PR_SET_PDEATHSIG), except programs with outlives_us.
// Each child has its own process group, so Ctrl-C reaches only us, and our environment without
// another launcher's ranks (launch/rank_environment.h). During its lifetime Wait receives this
// thread's SIGINT, SIGTERM, SIGCHLD, and SIGHUP unless that is ignored (nohup). REQUIRES: the
// process has one thread. Not thread-safe.
class Launcher {
 public:
  Launcher();
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Errors: those of the system. A program that cannot be executed, or cannot enter its host, exits
  // with code 127 and gives the reason in its last words. If the log cannot be opened, the program
  // runs without one and a warning is printed.
  absl::StatusOr<pid_t> Start(const Program& program);

  // Clock of deadlines and of Ended::at: RealTime, which never goes back with the wall clock.
  absl::Time Now() const { return time_.Now(); }

  // Waits for the exit of a child, an interrupt, readable data or end of file on `readable_fds`
  // (-1: skipped), or the deadline.
  LaunchEvent Wait(absl::Time deadline, const std::vector<int>& readable_fds = {});

  bool running(const std::string& name) const;
  size_t running_count() const { return children_.size(); }
  void Signal(const std::string& name, int signal);
  void SignalAll(int signal);
  // Kills all children with SIGKILL and reaps them.
  void KillAll();

 private:
  std::optional<Ended> Reap(int wait_options);

  const RealTime time_;
  sigset_t mask_before_;
  int signal_fd_ = -1;
  std::map<pid_t, Program> children_;
};

// Path of this program at the first call. A Launcher told to execute that path executes this
// program, even if the file has been replaced or deleted since. Errors: INTERNAL: /proc is not
// mounted.
absl::StatusOr<std::string> OwnExecutable();

// Last words of a child: its last "tug: error:" line if any, else its last line. Empty if it
// printed nothing.
std::string LastWords(const std::string& log_path);

}  // namespace tug

#endif  // TUG_LAUNCH_LAUNCHER_H_
