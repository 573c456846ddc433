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

namespace tug {

struct Program {
  std::string name;               // for messages: "worker-0"
  std::vector<std::string> argv;  // argv[0] is the path
  std::string log_path;           // stdout and stderr are appended to it; empty: both are ours
  int keep_fd = -1;               // stays open in the child, under the same number
  std::vector<int> cores;         // affinity mask of the child; empty: ours
  std::string host;               // to run in (cli/network_host.h); empty: ours
};

// A child that ended.
struct Ended {
  std::string name;
  pid_t pid = 0;
  int wait_status = 0;  // of waitpid
  std::string log_path;

  bool exited_with_zero() const;
  bool killed_by_signal() const;
  // "exited with code 3" or "was killed by signal 9 (Killed)"
  std::string How() const;
};

// What Wait saw. Both empty: the time was up.
struct LaunchEvent {
  std::optional<Ended> ended;
  bool interrupted = false;  // SIGINT or SIGTERM reached us
};

// Starts child processes and sees to it that none is left: not when the launcher goes (it kills and
// reaps them), nor when our process is killed (the kernel kills them, PR_SET_PDEATHSIG). Children
// have process groups of their own, so Ctrl-C reaches us alone. While it lives, SIGINT, SIGTERM and
// SIGCHLD of this thread are received by Wait. REQUIRES: the process has one thread. Not
// thread-safe.
class Launcher {
 public:
  Launcher();
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Errors: those of the system. A program that cannot be executed, or not enter its host, ends
  // with code 127, and its last words say why.
  absl::StatusOr<pid_t> Start(const Program& program);

  // Waits for a child to end, an interrupt, bytes or the end of `readable_fd` (if not -1), or the
  // deadline.
  LaunchEvent Wait(absl::Time deadline, int readable_fd = -1);

  bool running(const std::string& name) const;
  size_t running_count() const { return children_.size(); }
  void Signal(const std::string& name, int signal);
  // SIGKILL, and reaps.
  void KillAll();

 private:
  std::optional<Ended> Reap(int wait_options);

  sigset_t mask_before_;
  int signal_fd_ = -1;
  std::map<pid_t, Program> children_;
};

// What a child said last: its "tug: error:" line if there is one, otherwise its last line. Empty if
// it said nothing.
std::string LastWords(const std::string& log_path);

}  // namespace tug

#endif  // TUG_CLI_LAUNCHER_H_
