#ifndef TUG_CLI_LAUNCHER_H_
#define TUG_CLI_LAUNCHER_H_

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
  std::vector<std::string> argv;  // argv[0] is the path, or a name to be looked for in PATH
  // Stdout and stderr are appended to it; empty: both are ours. Its folder is made if it is gone.
  std::string log_path;
  int keep_fd = -1;               // stays open in the child, under the same number
  int input_fd = -1;              // its stdin; -1: nothing
  int output_fd = -1;             // its stdout and, if there is no error_fd, its stderr
  int error_fd = -1;              // its stderr
  std::vector<int> cores;         // affinity mask of the child; empty: ours
  std::string host;               // to run in (cli/network_host.h); empty: ours
  bool writes_log = false;        // log_path, by itself: stdout and stderr are ours all the same
  // Text of a key file that it finds by TUG_KEYS, in memory; empty: it has the TUG_KEYS of our
  // environment.
  std::string keys;
  bool outlives_us = false;  // when our process is killed: it sees the end of its input
  // SIGTERM and SIGHUP, from its start on, and with it what it starts.
  bool ignores_stop = false;
};

// A child that ended.
struct Ended {
  std::string name;
  pid_t pid = 0;
  int wait_status = 0;  // of waitpid; of exit code 1 if the status is unknown
  std::string log_path;
  bool writes_log = false;  // Program's
  absl::Time at;            // when it was seen
  // Something else in this process reaped it, or the kernel did since SIGCHLD is ignored.
  bool status_unknown = false;

  bool exited_with_zero() const;
  bool killed_by_signal() const;
  // A program on another host whose connection is gone (cli/attach.h).
  bool connection_lost() const;
  // "worker-0 (pid 17)", of a program that stands for one on another host "worker-0".
  std::string Who() const;
  // "exited with code 3", "was killed by signal 9 (Killed)", "is gone: connection to b lost" or
  // "ended with an unknown status"
  std::string How() const;
};

// What Wait saw. Both empty: the time was up.
struct LaunchEvent {
  std::optional<Ended> ended;
  bool interrupted = false;  // SIGINT, SIGTERM or SIGHUP reached us
  int signal = 0;            // SIGINT, or SIGTERM for both others
  pid_t sender = 0;          // who sent it
};

// Starts child processes and sees to it that none is left: not when the launcher goes (it kills and
// reaps them), nor when our process is killed (the kernel kills them, PR_SET_PDEATHSIG, but for
// those that outlive us). Children have process groups of their own, so Ctrl-C reaches us alone,
// and our environment without the ranks that another launcher has told us (cli/rank_environment.h).
// While it lives, Wait receives this thread's SIGINT, SIGTERM, SIGCHLD, and SIGHUP unless that is
// ignored (nohup). REQUIRES: the process has one thread. Not thread-safe.
class Launcher {
 public:
  Launcher();
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Errors: those of the system. A program that cannot be executed, or not enter its host, ends
  // with code 127, and its last words say why. One whose log cannot be opened runs without, and a
  // warning says so.
  absl::StatusOr<pid_t> Start(const Program& program);

  // The clock of deadlines and of Ended::at: RealTime, which the wall clock cannot set back.
  absl::Time Now() const { return time_.Now(); }

  // Waits for a child to end, an interrupt, bytes or the end of one of `readable_fds` (-1: none),
  // or the deadline.
  LaunchEvent Wait(absl::Time deadline, const std::vector<int>& readable_fds = {});

  bool running(const std::string& name) const;
  size_t running_count() const { return children_.size(); }
  void Signal(const std::string& name, int signal);
  void SignalAll(int signal);
  // SIGKILL, and reaps.
  void KillAll();

 private:
  std::optional<Ended> Reap(int wait_options);

  const RealTime time_;
  sigset_t mask_before_;
  int signal_fd_ = -1;
  std::map<pid_t, Program> children_;
};

// Path of this very program, as of the first call. A Launcher that is to execute it executes this
// program, whatever has become of the file since. Errors: INTERNAL: /proc is not mounted.
absl::StatusOr<std::string> OwnExecutable();

// What a child said last: its "tug: error:" line if there is one, otherwise its last line. Empty if
// it said nothing.
std::string LastWords(const std::string& log_path);

}  // namespace tug

#endif  // TUG_CLI_LAUNCHER_H_
