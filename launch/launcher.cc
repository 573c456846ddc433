// SPDX-License-Identifier: Apache-2.0
#include "launch/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cpu/cpu_affinity.h"
#include "base/files/file.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "launch/rank_environment.h"
#include "process/interrupts.h"
#include "process/log_format.h"
#include "process/network_host.h"
#include "process/pipe.h"
#include "security/key_file.h"

namespace tug {
namespace {

// The file of this program, whatever its current name.
constexpr char kOwnProgram[] = "/proc/self/exe";

// Opens Program::log_path, or /dev/null if that fails; nothing if the program inherits our streams.
FileDescriptor LogOf(const Program& program) {
  if (program.log_path.empty() || program.writes_log) return FileDescriptor();
  std::error_code ignored;  // opening the log reports the error
  const std::filesystem::path path = program.log_path;
  std::filesystem::create_directory(path.parent_path(), ignored);
  // A node that is restarted again and again does not fill the disk.
  if (std::filesystem::file_size(path, ignored) >= kLogFileBytes && !ignored) {
    std::filesystem::rename(path, std::filesystem::path(path).replace_extension(".1.log"), ignored);
  }
  FileDescriptor log(
      open(program.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (log.valid()) return log;
  Warn(absl::StrCat(program.name,
                    " runs without a log: ", FileError(errno, "open", program.log_path).message()));
  return FileDescriptor(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

// Runs in the child. `log_fd`: from LogOf.
void SetStreams(const Program& program, int log_fd) {
  const int input =
      program.input_fd >= 0 ? program.input_fd : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input >= 0) dup2(input, STDIN_FILENO);
  const int output = log_fd >= 0 ? log_fd : program.output_fd;
  const int error = program.error_fd >= 0 ? program.error_fd : output;
  if (output >= 0) dup2(output, STDOUT_FILENO);
  if (error >= 0) dup2(error, STDERR_FILENO);
}

bool IsOwnFile(const char* path) {
  struct stat named {};
  struct stat own {};
  return stat(path, &named) == 0 && stat(kOwnProgram, &own) == 0 && named.st_dev == own.st_dev &&
         named.st_ino == own.st_ino;
}

// Returns only on failure. All processes of a job run the same build: if our file was deleted or
// replaced, the child still executes ours.
void Execute(char* const* argv) {
  const absl::StatusOr<std::string> own = OwnExecutable();
  if (own.ok() && *own == argv[0] && !IsOwnFile(argv[0])) execv(kOwnProgram, argv);
  execvp(argv[0], argv);
}

absl::StatusOr<std::string> ReadOwnPath() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink(kOwnProgram, error);
  if (error)
    return absl::InternalError("cannot find the path of this program: check that /proc is mounted");
  return path.string();
}

// Runs in the child, between fork and exec. Our process has one thread, so allocating memory is
// safe.
[[noreturn]] void BecomeProgram(const Program& program, int log_fd, int keys_fd, char* const* argv,
                                pid_t parent, const sigset_t& mask) {
  if (!program.outlives_us) prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before PR_SET_PDEATHSIG took effect
  setpgid(0, 0);
  StayOn(program.cores);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  for (const int ignored_here : {SIGPIPE, SIGXFSZ}) signal(ignored_here, SIG_DFL);
  if (program.ignores_stop) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
  }
  SetStreams(program, log_fd);
  if (program.keep_fd >= 0) fcntl(program.keep_fd, F_SETFD, 0);
  ForgetRanks();
  if (keys_fd >= 0) {
    fcntl(keys_fd, F_SETFD, 0);
    setenv(kKeysVariable, absl::StrCat("/proc/self/fd/", keys_fd).c_str(), /*overwrite=*/1);
  }
  std::string problem(EnterNetworkHost(program.host).message());
  if (problem.empty()) {
    Execute(argv);
    problem = "cannot execute the program";
  }
  const std::string line = absl::StrCat("tug: error: ", problem, "\n");
  const ssize_t ignored = write(STDERR_FILENO, line.data(), line.size());
  static_cast<void>(ignored);
  _exit(127);
}

}  // namespace

bool Ended::exited_with_zero() const {
  return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
}

bool Ended::killed_by_signal() const { return WIFSIGNALED(wait_status); }

std::string Ended::Who() const {
  return writes_log ? name : absl::StrCat(name, " (pid ", pid, ")");
}

bool Ended::connection_lost() const {
  return writes_log && killed_by_signal() && WTERMSIG(wait_status) == SIGHUP;
}

std::string Ended::How() const {
  if (connection_lost()) {
    const std::string said = LastWords(log_path);
    return absl::StrCat("is gone: ", said.empty() ? "its connection is lost" : said);
  }
  if (killed_by_signal()) {
    const int signal = WTERMSIG(wait_status);
    return absl::StrCat("was killed by signal ", signal, " (", strsignal(signal), ")");
  }
  if (status_unknown) return "ended with an unknown status";
  return absl::StrCat("exited with code ", WEXITSTATUS(wait_status));
}

Launcher::Launcher() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&watched, signal);
  if (!IsIgnored(SIGHUP)) sigaddset(&watched, SIGHUP);
  TUG_CHECK_EQ(sigprocmask(SIG_BLOCK, &watched, &mask_before_), 0);
  signal_fd_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  TUG_CHECK_GE(signal_fd_, 0) << std::strerror(errno);
}

Launcher::~Launcher() {
  KillAll();
  // Discard pending interrupts, which have been handled: they must not kill us when the mask is
  // restored.
  signalfd_siginfo info;
  while (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) continue;
  close(signal_fd_);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

absl::StatusOr<pid_t> Launcher::Start(const Program& program) {
  TUG_CHECK(!program.argv.empty());
  std::vector<char*> argv;
  for (const std::string& argument : program.argv)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  FileDescriptor keys;
  if (!program.keys.empty()) {
    ASSIGN_OR_RETURN(keys, InMemory(program.keys));
  }
  const FileDescriptor log = LogOf(program);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start ", program.name, ": ", std::strerror(errno)));
  }
  if (pid == 0) BecomeProgram(program, log.get(), keys.get(), argv.data(), parent, mask_before_);
  children_[pid] = program;
  return pid;
}

std::optional<Ended> Launcher::Reap(int wait_options) {
  for (const auto& [pid, program] : children_) {
    int status = 0;
    const pid_t reaped = waitpid(pid, &status, wait_options);
    const bool unknown = reaped < 0 && errno == ECHILD;
    if (reaped != pid && !unknown) continue;
    if (unknown) status = W_EXITCODE(1, 0);
    const Ended ended{program.name,       pid,   status, program.log_path,
                      program.writes_log, Now(), unknown};
    children_.erase(pid);
    return ended;
  }
  return std::nullopt;
}

LaunchEvent Launcher::Wait(absl::Time deadline, const std::vector<int>& readable_fds) {
  std::vector<pollfd> fds = {{signal_fd_, POLLIN, 0}};
  for (const int fd : readable_fds) fds.push_back({fd, POLLIN, 0});
  while (true) {
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo == SIGCHLD) continue;
      const int signal = static_cast<int>(info.ssi_signo);
      return LaunchEvent{std::nullopt, true, signal == SIGHUP ? SIGTERM : signal,
                         static_cast<pid_t>(info.ssi_pid)};
    }
    // Signals of several children may be merged, so check the children each time.
    if (std::optional<Ended> ended = Reap(WNOHANG)) return LaunchEvent{std::move(ended), false};
    const absl::Duration left = deadline - Now();
    if (left <= absl::ZeroDuration()) return LaunchEvent{};
    const int64_t wait_ms = absl::ToInt64Milliseconds(std::min(left, absl::Hours(1))) + 1;
    const int ready = poll(fds.data(), fds.size(), static_cast<int>(wait_ms));
    if (ready > 0 && fds[0].revents == 0) return LaunchEvent{};
  }
}

bool Launcher::running(const std::string& name) const {
  return std::any_of(children_.begin(), children_.end(),
                     [&](const auto& child) { return child.second.name == name; });
}

void Launcher::Signal(const std::string& name, int signal) {
  for (const auto& [pid, program] : children_) {
    if (program.name == name) kill(pid, signal);
  }
}

void Launcher::SignalAll(int signal) {
  for (const auto& [pid, program] : children_) kill(pid, signal);
}

void Launcher::KillAll() {
  SignalAll(SIGKILL);
  while (Reap(0).has_value()) continue;
}

absl::StatusOr<std::string> OwnExecutable() {
  // After the file is deleted, the link reads "tug (deleted)".
  static const absl::StatusOr<std::string>& path = *new absl::StatusOr<std::string>(ReadOwnPath());
  return path;
}

std::string LastWords(const std::string& log_path) {
  constexpr size_t kMaxLength = 500;
  std::ifstream log(log_path);
  std::string last, error;
  for (std::string line; std::getline(log, line);) {
    while (!line.empty() && line.back() == '\r') line.pop_back();  // ssh ends its lines with \r\n
    if (line.empty()) continue;
    last = line;
    if (line.rfind("tug: error:", 0) == 0) error = line;
  }
  return (error.empty() ? last : error).substr(0, kMaxLength);
}

}  // namespace tug
