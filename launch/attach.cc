// SPDX-License-Identifier: Apache-2.0
#include "launch/attach.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/pipe_writer.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "launch/launcher.h"
#include "launch/remote_program.h"
#include "process/keys_argument.h"
#include "process/pipe.h"
#include "security/key_file.h"

namespace tug {
namespace {

constexpr uint64_t kAttachmentLimitBytes = uint64_t{64} << 20;
constexpr absl::Duration kFlushInterval = absl::Milliseconds(20);
constexpr absl::Duration kFlushTime = absl::Seconds(2);  // for the remaining output
// sshd refuses connections when many log in at once, and a host may be booting. All attempts
// together last longer than SupervisorOptions::quick_death (launch/supervisor_core.h), so a host
// may be absent for a while.
constexpr int kConnectAttempts = 5;
constexpr absl::Duration kConnectPause = absl::Milliseconds(1500);
constexpr char kConnection[] = "connection";
constexpr char kErrorLine[] = "tug: error:";
constexpr absl::Duration kSrunTime = absl::Seconds(3);  // for a step to end in order

class Attached {
 public:
  Attached(Attachment attachment, int ready_fd)
      : attachment_(std::move(attachment)), ready_fd_(ready_fd), shown_(STDOUT_FILENO) {
    if (ready_fd_ >= 0) fcntl(ready_fd_, F_SETFD, FD_CLOEXEC);  // not inherited by ssh
  }

  // Returns the program's wait status; nothing if the connection is lost.
  absl::StatusOr<std::optional<int>> Run() {
    for (int attempt = 1;; ++attempt) {
      RETURN_IF_ERROR(Connect());
      const std::optional<Ended> connection = Follow();
      while (PassOutput()) continue;
      while (PassErrors()) continue;
      if (wait_status_.has_value() || ProgramEnded(*connection)) break;
      const bool again = !begun_ && !killed_ && attempt < kConnectAttempts;
      Show(again ? absl::StrCat(last_, ": trying again") : last_);
      if (!again || !Pause()) break;
    }
    if (attachment_.by_srun) LetStepEnd();
    shown_.FlushUntil(SteadyNow() + kFlushTime);
    std::ofstream(attachment_.log_path) << (error_.empty() ? last_ : error_) << "\n";
    return wait_status_;
  }

 private:
  // Runs until the program or the connection has ended. Returns nothing, or the connection's end.
  std::optional<Ended> Follow() {
    const absl::Duration interval = AliveInterval(attachment_.program);
    absl::Time next_beat = launcher_.Now() + interval;
    std::optional<Ended> ended;
    while (!ended.has_value() && !wait_status_.has_value()) {
      const LaunchEvent event =
          launcher_.Wait(NextDeadline(next_beat), {output_.get(), errors_.get()});
      if (event.interrupted && !IsSlurms(event)) PassSignal(event.signal);
      if (launcher_.Now() >= next_beat) {
        if (down_->empty()) Down(kAlive);
        next_beat = launcher_.Now() + interval;
      }
      ended = event.ended;
      PassOutput();
      PassErrors();
      down_->Flush();
      shown_.Flush();
    }
    return ended;
  }

  absl::Status Connect() {
    ASSIGN_OR_RETURN(const std::string line, ToLine(attachment_.program));
    ASSIGN_OR_RETURN(Pipe down, NewPipe());
    ASSIGN_OR_RETURN(Pipe up, NewPipe());
    ASSIGN_OR_RETURN(Pipe errors, NewPipe());
    Program program;
    program.name = kConnection;
    program.argv = attachment_.connection;
    program.input_fd = down.read_end.get();
    program.output_fd = up.write_end.get();
    program.error_fd = errors.write_end.get();
    program.outlives_us = attachment_.by_srun;  // a killed srun would kill the program at once
    RETURN_IF_ERROR(launcher_.Start(program).status());
    input_ = std::move(down.write_end);
    output_ = std::move(up.read_end);
    errors_ = std::move(errors.read_end);
    down_.emplace(input_.get());
    down_->Append(absl::StrCat(line, "\n"));
    return absl::OkStatus();
  }

  // A killed srun reports its step as failed, and leaves its end to Slurm.
  void LetStepEnd() {
    input_ = FileDescriptor();
    const absl::Time end = launcher_.Now() + kSrunTime;
    while (launcher_.running_count() > 0 && launcher_.Now() < end) launcher_.Wait(end);
  }

  absl::Time NextDeadline(absl::Time next_beat) const {
    const bool waiting = !down_->empty() || !shown_.empty();
    return waiting ? std::min(next_beat, launcher_.Now() + kFlushInterval) : next_beat;
  }

  // Slurm sends SIGTERM to all processes of a job: only the launcher decides what to do.
  bool IsSlurms(const LaunchEvent& event) const {
    return attachment_.by_srun && event.signal == SIGTERM && event.sender != getppid();
  }
  void PassSignal(int signal) {
    killed_ = killed_ || signal != SIGINT;
    Down(signal == SIGINT ? SIGINT : SIGKILL);
  }
  // Waits before another attempt. False: interrupted.
  bool Pause() {
    const absl::Time end = launcher_.Now() + kConnectPause;
    while (launcher_.Now() < end) {
      if (launcher_.Wait(end).interrupted) return false;
    }
    return true;
  }

  void Down(int signal) { down_->Append(std::string(1, static_cast<char>(signal))); }

  // Whether a connection that closed without an "ended" line ended with the program: it exited like
  // `tug attend`, and ssh itself did not fail.
  bool ProgramEnded(const Ended& connection) {
    constexpr int kSshFailed = 255;
    const int code = WEXITSTATUS(connection.wait_status);
    // srun has no exit code for its own failures.
    const bool failed_itself = attachment_.by_srun ? attend_said_.empty() : code == kSshFailed;
    const bool lost =
        connection.killed_by_signal() || connection.exited_with_zero() || failed_itself;
    error_.clear();
    last_ = attend_said_.empty() ? ssh_said_ : attend_said_;
    if (!lost) {
      wait_status_ = connection.wait_status;
      return true;
    }
    last_ = absl::StrCat("connection to ", attachment_.host, " lost",
                         ssh_said_.empty() ? "" : absl::StrCat(": ", ssh_said_));
    return false;
  }

  // False: no more output.
  bool PassOutput() {
    return PassLines(output_, lines_, [this](const std::string& line) { OnLine(line); });
  }
  bool PassErrors() {
    return PassLines(errors_, error_lines_, [this](const std::string& line) {
      ssh_said_ = std::string(absl::StripSuffix(line, "\r"));
      if (absl::StartsWith(ssh_said_, kErrorLine)) attend_said_ = ssh_said_;
      Show(ssh_said_);
    });
  }

  void OnLine(const std::string& line) {
    if (line.empty() && !begun_) return;
    if (line.empty() || line[0] != kControl) {
      last_ = line;
      if (absl::StartsWith(line, kErrorLine)) error_ = line;
      Show(line);
      return;
    }
    absl::string_view control = absl::string_view(line).substr(1);
    int status = 0;
    if (control == kBegun) {
      begun_ = true;
    } else if (absl::ConsumePrefix(&control, kReady)) {
      ReportReady(absl::StrCat(control, "\n"));
    } else if (absl::ConsumePrefix(&control, kEnded) && absl::SimpleAtoi(control, &status)) {
      wait_status_ = status;
    }
  }

  void ReportReady(const std::string& line) {
    if (ready_fd_ < 0) return;
    const ssize_t ignored = write(ready_fd_, line.data(), line.size());  // the launcher is exiting
    static_cast<void>(ignored);
    close(ready_fd_);
    ready_fd_ = -1;
  }

  void Show(const std::string& line) { shown_.AppendLineIfRoom(attachment_.prefix, line); }

  const Attachment attachment_;
  int ready_fd_;
  PipeWriter shown_;
  Launcher launcher_;
  FileDescriptor input_, output_, errors_;
  std::optional<PipeWriter> down_;
  LineReader lines_, error_lines_;
  std::string last_, error_;
  std::string ssh_said_, attend_said_;  // stderr: the last line, and the last "tug: error:" line
  bool begun_ = false;                  // the program has begun
  bool killed_ = false;                 // by the launcher
  std::optional<int> wait_status_;
};

[[noreturn]] void DieBy(int signal) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  ::signal(signal, SIG_DFL);
  sigset_t all;
  sigemptyset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  raise(signal);
  std::_Exit(128 + signal);
}

}  // namespace

absl::Status Attach(const std::string& path, int ready_fd) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kAttachmentLimitBytes));
  ASSIGN_OR_RETURN(Attachment attachment, ParseAttachment(text));
  ASSIGN_OR_RETURN(const JobKeys keys, KeysArgument().Read());
  if (!keys.none()) attachment.program.keys = KeyFileText(keys);
  ASSIGN_OR_RETURN(const std::optional<int> status,
                   Attached(std::move(attachment), ready_fd).Run());
  if (!status.has_value()) DieBy(SIGHUP);
  if (WIFSIGNALED(*status)) DieBy(WTERMSIG(*status));
  std::_Exit(WEXITSTATUS(*status));
}

}  // namespace tug
