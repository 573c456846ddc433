// SPDX-License-Identifier: Apache-2.0
#include "launch/attend.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/pipe_writer.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "coordinator/observe/run_folder.h"
#include "launch/launcher.h"
#include "launch/remote_program.h"
#include "launch/route.h"
#include "process/pipe.h"

namespace tug {
namespace {

constexpr size_t kLineLimitBytes = size_t{64} << 20;
constexpr absl::Duration kLineTime = absl::Seconds(30);
// For a job to end in order after the launcher is gone.
constexpr absl::Duration kEndTime = absl::Seconds(6);
constexpr absl::Duration kKillInterval = absl::Seconds(1);
constexpr absl::Duration kLate = absl::Seconds(1);  // past a deadline; no busy machine takes longer
constexpr absl::Duration kUpFlushInterval = absl::Milliseconds(20);
constexpr absl::Duration kUpFlushTime = absl::Seconds(1);  // for the remaining output

// Reads the first line from the launcher, byte by byte: later bytes must stay in the pipe.
absl::StatusOr<RemoteProgram> ReadProgram() {
  std::string line;
  char c;
  const RealTime time;
  const absl::Time deadline = time.Now() + kLineTime;
  while (line.size() < kLineLimitBytes) {
    pollfd readable{STDIN_FILENO, POLLIN, 0};
    const absl::Duration left = deadline - time.Now();
    if (left <= absl::ZeroDuration()) break;
    if (poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(left) + 1)) <= 0) continue;
    const ssize_t got = read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (c == '\n') return ParseRemoteProgram(line);
    line += c;
  }
  return absl::InvalidArgumentError("no program on stdin: this command is started by `tug launch`");
}

class Attendant {
 public:
  explicit Attendant(RemoteProgram remote) : remote_(std::move(remote)), up_(STDOUT_FILENO) {}

  absl::StatusOr<int> Run() {
    RETURN_IF_ERROR(StartProgram());
    up_.Append("\n");  // the shell's startup files may have printed part of a line
    Tell(kBegun);
    OpenLog(remote_.run_dir);
    heard_at_ = launcher_.Now();
    while (!wait_status_.has_value()) {
      const LaunchEvent event = launcher_.Wait(NextDeadline(), {input(), output(), ready()});
      if (event.interrupted) ObeyOwnSignal(event.signal);
      ObeyLauncher();
      PassReady();
      PassOutput();
      if (event.ended.has_value()) wait_status_ = event.ended->wait_status;
      EndWhatIsLeft();
      up_.Flush();
    }
    PassReady();
    while (output() >= 0 && PassOutput()) continue;
    // The launcher may only have been silent: report that the job did not finish.
    if (ends_at_.has_value()) wait_status_ = SIGHUP;
    Tell(absl::StrCat(kEnded, *wait_status_));
    up_.FlushUntil(SteadyNow() + kUpFlushTime);
    return *wait_status_;
  }

 private:
  int input() const { return connected_ ? STDIN_FILENO : -1; }
  int output() const { return output_.get(); }
  int ready() const { return ready_.get(); }

  absl::Status StartProgram() {
    std::error_code ignored;  // on failure it runs in the user's home
    std::filesystem::current_path(remote_.folder, ignored);
    ASSIGN_OR_RETURN(const FileDescriptor program_input, InMemory(remote_.input));
    ASSIGN_OR_RETURN(Pipe said, NewPipe());
    ASSIGN_OR_RETURN(Pipe told, NewPipe());
    Program program;
    program.name = remote_.name;
    ASSIGN_OR_RETURN(program.argv.emplace_back(), OwnExecutable());
    for (std::string argument : remote_.argv) {
      if (argument == kReadyArgument) program.keep_fd = told.write_end.get();
      if (argument == kReadyArgument) argument = std::to_string(program.keep_fd);
      if (absl::StrContains(argument, kAddressArgument)) {
        ASSIGN_OR_RETURN(const std::string address,
                         AddressToward(remote_.peers, remote_.interfaces));
        argument = absl::StrReplaceAll(argument, {{kAddressArgument, address}});
      }
      program.argv.push_back(std::move(argument));
    }
    program.keys = remote_.keys;
    program.input_fd = program_input.get();
    program.output_fd = said.write_end.get();
    program.ignores_stop = remote_.ignores_stop;
    RETURN_IF_ERROR(launcher_.Start(program).status());
    output_ = std::move(said.read_end);
    if (program.keep_fd >= 0) ready_ = std::move(told.read_end);
    return absl::OkStatus();
  }

  absl::Time NextDeadline() const {
    absl::Time deadline = absl::InfiniteFuture();
    if (connected_ && !remote_.detached && !ends_at_.has_value())
      deadline = heard_at_ + remote_.silence;
    if (ends_at_.has_value()) deadline = std::min(deadline, *ends_at_);
    return up_.empty() ? deadline : std::min(deadline, launcher_.Now() + kUpFlushInterval);
  }

  void ObeyOwnSignal(int signal) {
    if (!remote_.ignores_stop || signal != SIGTERM) return Signal(signal);
    if (!remote_.ends_in_order || ends_) return;
    Signal(SIGINT);
    asked_here_ = true;
  }

  void Signal(int signal) {
    ends_ = ends_ || signal == SIGINT || signal == SIGTERM;
    launcher_.Signal(remote_.name, signal);
  }

  // Handles signals and signs of life from the launcher.
  void ObeyLauncher() {
    if (!connected_) return;
    const std::optional<std::string> bytes = ReadWhatIsThere(STDIN_FILENO);
    if (!bytes.has_value()) {
      connected_ = false;
      return;
    }
    if (!bytes->empty()) heard_at_ = launcher_.Now();
    for (const char signal : *bytes) {
      // The launcher received that SIGTERM too; a second signal would end the job at once.
      if (signal == SIGINT && std::exchange(asked_here_, false)) continue;
      if (signal != kAlive) Signal(signal);
    }
  }

  // Ends the program once the launcher is gone or silent for too long.
  void EndWhatIsLeft() {
    const absl::Time now = launcher_.Now();
    // If it wakes long after the deadline, this process itself was suspended.
    if (now >= heard_at_ + remote_.silence + kLate) heard_at_ = now;
    const bool gone = !connected_ || now >= heard_at_ + remote_.silence;
    if (gone && !remote_.detached && !ends_at_.has_value()) {
      Say("tug: warning: the connection to `tug launch` is lost: ending");
      ends_at_ = now + kEndTime;
      // A second signal would end it at once.
      if (remote_.ends_in_order && !ends_) Signal(SIGINT);
    }
    if (ends_at_.has_value() && now >= *ends_at_) {
      launcher_.Signal(remote_.name, SIGKILL);
      ends_at_ = now + kKillInterval;  // it may be waiting for a disk
    }
  }

  // False: no more output.
  bool PassOutput() {
    return PassLines(output_, lines_, [this](const std::string& line) { Say(line); });
  }

  void PassReady() {
    PassLines(ready_, ready_lines_, [this](const std::string& line) {
      Tell(absl::StrCat(kReady, line));
      const std::vector<std::string> parts = absl::StrSplit(line, '\t');
      if (parts.size() == 2) OpenLog(parts[1]);
    });
  }

  void Tell(const std::string& control) {
    up_.Append(absl::StrCat(std::string(1, kControl), control, "\n"));
    up_.Flush();
  }

  void Say(const std::string& line) {
    const bool looks_like_control = !line.empty() && line[0] == kControl;
    up_.AppendLineIfRoom(looks_like_control ? " " : "", line);
    if (!log_.valid()) return;
    const std::string ended = absl::StrCat(line, "\n");
    const ssize_t ignored = write(log_.get(), ended.data(), ended.size());  // disk full
    static_cast<void>(ignored);
  }

  // Hosts that do not share the run folder keep no log.
  void OpenLog(const std::string& run_dir) {
    std::error_code error;
    if (run_dir.empty() || !std::filesystem::is_directory(run_dir, error)) return;
    const std::string folder = absl::StrCat(run_dir, "/", kLogFolder);
    std::filesystem::create_directory(folder, error);
    const std::string path = absl::StrCat(folder, "/", remote_.name, ".log");
    log_ = FileDescriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  }

  const RemoteProgram remote_;
  Launcher launcher_;
  PipeWriter up_;
  FileDescriptor output_, ready_, log_;
  LineReader lines_, ready_lines_;
  bool connected_ = true;
  bool ends_ = false;        // was asked to end in order
  bool asked_here_ = false;  // by a signal that the launcher may forward as well
  absl::Time heard_at_;
  std::optional<absl::Time> ends_at_;
  std::optional<int> wait_status_;
};

}  // namespace

absl::StatusOr<int> Attend() {
  ASSIGN_OR_RETURN(RemoteProgram program, ReadProgram());
  return Attendant(std::move(program)).Run();
}

}  // namespace tug
