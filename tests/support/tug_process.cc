// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tug_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/check.h"

namespace tug {
namespace {

constexpr char kMarker[] = "TUG_TEST_ID=";
constexpr absl::Duration kLookInterval = absl::Milliseconds(5);

// glibc 2.36 declares pidfd functions without extern "C".
int OpenPidFd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }
void SendSignal(int pid_fd, int signal) {
  syscall(SYS_pidfd_send_signal, pid_fd, signal, nullptr, 0);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentOf(const ProcessOptions& options) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  environment.push_back(kMarker + options.test_id);
  environment.insert(environment.end(), options.environment.begin(), options.environment.end());
  return environment;
}

int OpenOutput(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  TUG_CHECK(fd >= 0) << path << ": " << std::strerror(errno);
  return fd;
}

struct ChildFds {
  int in;
  int out;
  int err;
};

// Runs in the child between fork and exec: makes only system calls.
[[noreturn]] void BecomeProgram(const ProcessOptions& options, char* const* argv,
                                char* const* environment, const ChildFds& fds, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  setpgid(0, 0);
  dup2(fds.in, STDIN_FILENO);
  dup2(fds.out, STDOUT_FILENO);
  dup2(fds.err, STDERR_FILENO);
  for (const int ignored : options.ignored_signals) signal(ignored, SIG_IGN);
  for (const auto& [resource, most] : options.limits) {
    const rlimit limit{most, most};
    setrlimit(static_cast<__rlimit_resource>(resource), &limit);
  }
  if (chdir(options.working_dir.c_str()) != 0) _exit(126);
  execve(argv[0], argv, environment);
  _exit(127);
}

std::vector<std::string> SplitZeros(const std::string& text) {
  return absl::StrSplit(text, '\0', absl::SkipEmpty());
}

}  // namespace

Process::Process(const ProcessOptions& options)
    : command_(absl::StrJoin(options.argv, " ")), output_path_(options.output_path) {
  const std::vector<char*> argv = Pointers(options.argv);
  const std::vector<std::string> environment_text = EnvironmentOf(options);
  const std::vector<char*> environment = Pointers(environment_text);
  ChildFds fds;
  fds.in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  fds.out = options.output_fd.has_value() ? *options.output_fd : OpenOutput(output_path_ + ".out");
  fds.err = options.output_fd.has_value() ? *options.output_fd : OpenOutput(output_path_ + ".err");
  started_at_ = absl::Now();
  const pid_t parent = getpid();
  pid_ = fork();
  TUG_CHECK(pid_ >= 0) << std::strerror(errno);
  if (pid_ == 0) BecomeProgram(options, argv.data(), environment.data(), fds, parent);
  close(fds.in);
  if (!options.output_fd.has_value()) {
    close(fds.out);
    close(fds.err);
  }
  pid_fd_ = OpenPidFd(pid_);
  TUG_CHECK(pid_fd_ >= 0) << std::strerror(errno);
}

Process::~Process() {
  if (!ended()) {
    Signal(SIGKILL);
    PollEnd(absl::InfiniteDuration());
  }
  close(pid_fd_);
}

void Process::Signal(int signal) const {
  if (!ended()) SendSignal(pid_fd_, signal);
}

bool Process::PollEnd(absl::Duration timeout) {
  if (ended()) return true;
  const int timeout_ms =
      timeout == absl::InfiniteDuration()
          ? -1
          : static_cast<int>(absl::ToInt64Milliseconds(std::max(timeout, absl::ZeroDuration())));
  pollfd readable{pid_fd_, POLLIN, 0};
  if (poll(&readable, 1, timeout_ms) <= 0) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  ended_at_ = absl::Now();
  wait_status_ = status;
  return true;
}

bool Process::WaitForEnd(absl::Time deadline) {
  while (!PollEnd(deadline - absl::Now() + absl::Milliseconds(1))) {
    if (absl::Now() > deadline) return false;
  }
  return true;
}

bool Process::WaitUntil(const std::function<bool()>& holds, absl::Time deadline) {
  while (!holds()) {
    if (absl::Now() > deadline) return false;
    if (PollEnd(kLookInterval)) return holds();
  }
  return true;
}

int Process::exit_code() const {
  TUG_CHECK(ended());
  return WIFSIGNALED(*wait_status_) ? 128 + WTERMSIG(*wait_status_) : WEXITSTATUS(*wait_status_);
}

std::string Process::out() const { return ReadText(output_path_ + ".out"); }
std::string Process::err() const { return ReadText(output_path_ + ".err"); }

std::vector<FoundProcess> FindProcesses(const std::string& test_id) {
  std::vector<FoundProcess> found;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    FoundProcess process;
    if (!absl::SimpleAtoi(entry->path().filename().string(), &process.pid)) continue;
    // Empty for a zombie or a process of another user.
    const auto environment = SplitZeros(ReadText((entry->path() / "environ").string()));
    if (std::find(environment.begin(), environment.end(), kMarker + test_id) == environment.end()) {
      continue;
    }
    process.argv = SplitZeros(ReadText((entry->path() / "cmdline").string()));
    found.push_back(std::move(process));
  }
  std::sort(found.begin(), found.end(),
            [](const FoundProcess& a, const FoundProcess& b) { return a.pid < b.pid; });
  return found;
}

bool IsPending(pid_t pid, int signal) {
  constexpr char kKey[] = "ShdPnd:\t";
  const std::string status = ReadText(absl::StrCat("/proc/", pid, "/status"));
  const size_t at = status.find(kKey);
  uint64_t pending = 0;
  return at != std::string::npos &&
         absl::SimpleHexAtoi(status.substr(at + sizeof(kKey) - 1, 16), &pending) &&
         (pending >> (signal - 1) & 1) != 0;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

}  // namespace tug
