#ifndef TUG_TESTS_TUG_PROCESS_H_
#define TUG_TESTS_TUG_PROCESS_H_

// Real processes for whole-system tests. Every process that a test starts, and all that those
// start, carry TUG_TEST_ID=<id> in their environment, by which they are found in /proc whatever
// group or session they have moved to. Linux only. Not thread-safe.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tug {

struct ProcessOptions {
  std::vector<std::string> argv;  // argv[0] is the path
  std::string working_dir;
  std::string output_path;       // stdout goes to <output_path>.out, stderr to <output_path>.err
  std::optional<int> output_fd;  // instead of these; not owned
  std::string test_id;           // value of TUG_TEST_ID
  std::vector<std::string> environment;  // "NAME=value", beside ours
  std::vector<int> ignored_signals;
  // Soft and hard limits of setrlimit, by resource.
  std::map<int, uint64_t> limits;
};

// A started process, leader of a group of its own. The destructor kills and reaps it; the kernel
// does (PR_SET_PDEATHSIG) when the test itself is killed.
class Process {
 public:
  // Fails the test's own checks (abort) if it cannot be started at all.
  explicit Process(const ProcessOptions& options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& command() const { return command_; }  // for messages

  void Signal(int signal) const;

  // Waits for its end, woken by the kernel; false if it has not come by then.
  bool WaitForEnd(absl::Time deadline);
  // Waits until `holds`; false if it does not by then, or the process has ended and it still does
  // not. Looks every few milliseconds: for conditions nobody announces.
  bool WaitUntil(const std::function<bool()>& holds, absl::Time deadline);

  bool ended() const { return wait_status_.has_value(); }
  // Of an ended process: exit code, or 128 + signal.
  int exit_code() const;
  // From start to end.
  absl::Duration time() const { return ended_at_ - started_at_; }

  // What it has said so far.
  std::string out() const;
  std::string err() const;

 private:
  bool PollEnd(absl::Duration timeout);

  std::string command_;
  std::string output_path_;
  pid_t pid_ = -1;
  int pid_fd_ = -1;
  std::optional<int> wait_status_;
  absl::Time started_at_;
  absl::Time ended_at_;
};

struct FoundProcess {
  pid_t pid = 0;
  std::vector<std::string> argv;
};

// Living processes whose environment has TUG_TEST_ID=<test_id>, by pid.
std::vector<FoundProcess> FindProcesses(const std::string& test_id);

// Whether a signal was sent to a process, and has yet to be received.
bool IsPending(pid_t pid, int signal);

// The whole file; empty if it cannot be read.
std::string ReadText(const std::string& path);

}  // namespace tug

#endif  // TUG_TESTS_TUG_PROCESS_H_
