// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TESTS_SUPPORT_TUG_PROCESS_H_
#define TUG_TESTS_SUPPORT_TUG_PROCESS_H_

// Real processes for whole-system tests. Every process that a test starts, and its descendants,
// have TUG_TEST_ID=<id> in their environment, by which they are found in /proc in whatever group or
// session. Linux only. Not thread-safe.

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
  std::optional<int> output_fd;  // replaces these files; not owned
  std::string test_id;           // value of TUG_TEST_ID
  std::vector<std::string> environment;  // "NAME=value", in addition to the test's own
  std::vector<int> ignored_signals;
  // Value of both the soft and the hard limit (setrlimit), by resource.
  std::map<int, uint64_t> limits;
};

// A started process, leader of its own process group. The destructor kills and reaps it; if the
// test itself is killed, the kernel kills it (PR_SET_PDEATHSIG).
class Process {
 public:
  // Aborts if the process cannot be started.
  explicit Process(const ProcessOptions& options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& command() const { return command_; }  // for messages

  void Signal(int signal) const;

  // Waits until the process ends; false at the deadline. Does not poll.
  bool WaitForEnd(absl::Time deadline);
  // Waits until `holds()` is true; false if it is still false at the deadline or after the process
  // has ended. Polls every few milliseconds.
  bool WaitUntil(const std::function<bool()>& holds, absl::Time deadline);

  bool ended() const { return wait_status_.has_value(); }
  // Exit code, or 128 + signal. REQUIRES: ended().
  int exit_code() const;
  // Run time, from start to end.
  absl::Duration time() const { return ended_at_ - started_at_; }

  // Output so far.
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

// Whether a signal was sent to a process and not received yet.
bool IsPending(pid_t pid, int signal);

// Contents of the file; empty if it cannot be read.
std::string ReadText(const std::string& path);

}  // namespace tug

#endif  // TUG_TESTS_SUPPORT_TUG_PROCESS_H_
