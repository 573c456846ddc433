// SPDX-License-Identifier: Apache-2.0
#include "launch/local_job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/files/shell_word.h"
#include "base/log.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/observe/run_folder.h"
#include "launch/gpu_share.h"
#include "launch/launcher.h"
#include "process/job_arguments.h"
#include "process/log_format.h"
#include "process/pipe.h"
#include "proto/process_name.h"
#include "security/key_file.h"
#include "security/security_rules.h"

namespace tug {
namespace {

constexpr char kLauncherProcess[] = "launcher";  // in logs
constexpr char kSpare[] = "--spare";
constexpr absl::Duration kKillTime = absl::Seconds(3);  // for remote hosts to confirm the kill

// Whether processes listen on addresses other than loopback, as far as known here.
bool IsExposed(const LocalJob& job) {
  if (job.elsewhere) return true;
  const auto exposed = [](const NetworkHost& host) { return !IsLoopback(host.address); };
  return std::any_of(job.hosts.begin(), job.hosts.end(), exposed) ||
         std::any_of(job.server_hosts.begin(), job.server_hosts.end(), exposed);
}

// Hint for a process that was killed and could not report the cause: the kernel sends SIGKILL when
// memory runs out; gRPC aborts with SIGABRT, silently, when it gets no thread. Empty for other
// ends.
std::string KillHint(const Ended& ended) {
  const int signal = ended.killed_by_signal() ? WTERMSIG(ended.wait_status) : 0;
  if (signal == SIGKILL) return " (possibly out of memory: check dmesg on that host)";
  if (signal == SIGABRT) {
    return " (possibly no memory or thread available: raise ulimit -v and ulimit -u)";
  }
  return "";
}

void LogStart(const std::string& name, pid_t pid) {
  LogInFile(LogLevel::kInfo, absl::StrCat("started ", name, " (pid ", pid, ")"));
}

ProcessExit ExitOf(const Ended& ended) {
  if (ended.connection_lost()) return ProcessExit::kConnectionLost;
  if (ended.killed_by_signal()) return ProcessExit::kKilled;
  if (ended.status_unknown) return ProcessExit::kUnknown;
  return ended.exited_with_zero() ? ProcessExit::kZero : ProcessExit::kError;
}

// Carries out what a SupervisorCore decides with real processes.
class Supervisor {
 public:
  explicit Supervisor(const LocalJob& job) : job_(job), core_(job.supervision) {}

  absl::Status Run() {
    for (uint32_t i = 0; i < job_.servers + job_.spare_servers; ++i) {
      core_.AddNode(ProcessName(kServerRole, i), true, i >= job_.servers, launcher_.Now());
    }
    for (uint32_t i = 0; i < job_.workers; ++i) {
      core_.AddNode(ProcessName(kWorkerRole, i), false, false, launcher_.Now());
    }
    core_.Begin(launcher_.Now());
    const absl::StatusOr<EndJob> end = RunToEnd();
    KillAll();
    const absl::Status status = end.ok() ? StatusOf(*end) : end.status();
    const bool may_run = ended_[kCoordinatorProcess].connection_lost();  // then it tidies up itself
    if (!run_dir_.empty() && !may_run) TidyRunFolder();
    NoteInterrupt(absl::InfinitePast());
    if (!job_.interrupt_is_error || !core_.interrupted() || absl::IsCancelled(status))
      return status;
    return absl::CancelledError("interrupted");
  }

 private:
  // Host of the `place`-th process, if hosts are assigned in turn.
  NetworkHost HostOf(size_t place) const {
    if (job_.hosts.empty()) return {.address = "127.0.0.1"};
    return job_.hosts[place % job_.hosts.size()];
  }
  NetworkHost HostOfServer(size_t server) const;
  NetworkHost HostOfWorker(size_t worker) const;
  // Share of a worker among the workers of its machine.
  GpuShare GpuShareOf(uint32_t worker) const;
  // Errors: those of the system.
  absl::StatusOr<EndJob> RunToEnd();
  absl::Status HandleEvent();
  absl::Status Do(const StartProcess& start);
  absl::Status StartCoordinator(const std::vector<std::string>& arguments);
  std::vector<std::string> CoordinatorArguments() const;
  absl::Status ReadReport();
  absl::Status OpenLog() const;
  absl::Status MakeNodePrograms();
  absl::Status Start(Program program);
  // Waits for an interrupt or another event while the job is being ended.
  void NoteInterrupt(absl::Time deadline) {
    if (launcher_.Wait(deadline).interrupted) core_.OnInterrupt(launcher_.Now());
  }
  // Also kills remote processes whose connections may be gone.
  void KillAll();
  void TidyRunFolder() const;
  absl::Status StatusOf(const EndJob& end);
  absl::Status LostProcess(const Ended& process) const;
  std::string ResumeHint() const;

  const LocalJob& job_;
  Launcher launcher_;
  SupervisorCore core_;
  FileDescriptor report_fd_;  // valid until the coordinator has reported address and run folder
  std::string report_;
  std::string address_;
  std::string run_dir_;  // empty until the coordinator has reported it
  pid_t coordinator_pid_ = 0;
  std::map<std::string, Program> programs_;  // of nodes, by name
  std::map<std::string, Ended> ended_;       // the last exit of each process, by name
};

absl::StatusOr<EndJob> Supervisor::RunToEnd() {
  while (true) {
    for (const SupervisorAction& action : core_.TakeActions()) {
      if (const auto* end = std::get_if<EndJob>(&action)) return *end;
      if (const auto* start = std::get_if<StartProcess>(&action)) RETURN_IF_ERROR(Do(*start));
      if (const auto* exit = std::get_if<WarnOfExit>(&action)) {
        const Ended& ended = ended_[exit->name];
        Warn(absl::StrCat(exit->name, " ", ended.How(),
                          " after the job was done: ", LastWords(ended.log_path)));
      }
      if (std::holds_alternative<StopCoordinator>(action)) {
        launcher_.Signal(kCoordinatorProcess, SIGINT);
      }
    }
    RETURN_IF_ERROR(HandleEvent());
  }
}

absl::Status Supervisor::HandleEvent() {
  const LaunchEvent event = launcher_.Wait(core_.NextDeadline(), {report_fd_.get()});
  if (event.interrupted) {
    core_.OnInterrupt(launcher_.Now());
  } else if (event.ended.has_value()) {
    const Ended& ended = *event.ended;
    ended_[ended.name] = ended;
    LogInFile(ended.exited_with_zero() ? LogLevel::kInfo : LogLevel::kWarning,
              absl::StrCat(ended.Who(), " ", ended.How()));
    // The pipe may still hold the report of a coordinator that has ended.
    while (ended.name == kCoordinatorProcess && report_fd_.valid()) RETURN_IF_ERROR(ReadReport());
    core_.OnExit(ended.name, ExitOf(ended), ended.at);
  } else if (report_fd_.valid()) {
    return ReadReport();
  } else {
    core_.OnTick(launcher_.Now());
  }
  return absl::OkStatus();
}

absl::Status Supervisor::Do(const StartProcess& start) {
  const bool coordinator = start.name == kCoordinatorProcess;
  if (start.again) {
    const Ended& ended = ended_[start.name];
    Tell(absl::StrCat(
        coordinator ? "the " : "", ended.Who(), " ", ended.How(),
        coordinator ? ": starting another one to recover the job" : ": starting a replacement",
        KillHint(ended)));
  }
  if (coordinator) {
    ended_.erase(start.name);
    return StartCoordinator(start.again ? std::vector<std::string>{"--recover", run_dir_}
                                        : CoordinatorArguments());
  }
  Program program = programs_[start.name];
  if (start.spare) program.argv.push_back(kSpare);
  return Start(std::move(program));
}

std::vector<std::string> Supervisor::CoordinatorArguments() const {
  std::vector<std::string> arguments = {job_.job_text.has_value() ? kJobOnInput : job_.job_file,
                                        "--listen", absl::StrCat(HostOf(0).address, ":0")};
  const std::vector<std::string> settings = SetWords(job_.overrides);
  arguments.insert(arguments.end(), settings.begin(), settings.end());
  for (const auto& [flag, value] :
       {std::pair{"--resume", job_.resume}, {"--run-dir", job_.run_dir}}) {
    if (value.empty()) continue;
    arguments.push_back(flag);
    arguments.push_back(value);
  }
  return arguments;
}

absl::Status Supervisor::StartCoordinator(const std::vector<std::string>& arguments) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot make a pipe: ", std::strerror(errno)));
  }
  report_.clear();
  report_fd_ = FileDescriptor(fds[0]);
  const FileDescriptor write_end(
      fds[1]);  // closed here, so that reads end when the coordinator dies
  Program program;
  program.name = kCoordinatorProcess;
  program.host = HostOf(0).name;
  program.log_path = job_.coordinator_log;
  program.argv = {job_.executable, kCoordinatorProcess, "--ready-fd",
                  std::to_string(write_end.get())};
  program.argv.insert(program.argv.end(), arguments.begin(), arguments.end());
  if (job_.security.keys_made) program.argv.push_back("--keep-keys");
  if (job_.elsewhere) {
    program.argv.insert(program.argv.end(), {"--continue-with", ShellCommand(job_.command)});
  }
  program.keep_fd = write_end.get();
  FileDescriptor text;
  if (job_.job_text.has_value()) {
    ASSIGN_OR_RETURN(text, InMemory(*job_.job_text));
    program.input_fd = text.get();
  }
  return Start(program);
}

void Supervisor::TidyRunFolder() const {
  // If the job was resumed in the meantime, its folder has a new owner: leave it alone.
  const absl::StatusOr<OwnedRunFolder> owned = OwnRunFolder(run_dir_);
  if (!owned.ok()) return;
  RemoveCoordinatorAddress(run_dir_);
  std::error_code ignored;  // the nodes are gone: nothing to recover
  std::filesystem::remove(std::filesystem::path(run_dir_) / kJournalFile, ignored);
  if (job_.security.keys_made) RemoveKeys(run_dir_);
}

// Reads part of the coordinator's report, one line; closes report_fd_ at its end.
absl::Status Supervisor::ReadReport() {
  char bytes[1024];
  const ssize_t got = read(report_fd_.get(), bytes, sizeof(bytes));
  if (got > 0) report_.append(bytes, static_cast<size_t>(got));
  const bool complete = !report_.empty() && report_.back() == '\n';
  if (got > 0 && !complete) return absl::OkStatus();
  report_fd_ = FileDescriptor();
  if (!complete) {
    core_.OnNotReady(launcher_.Now());
    return absl::OkStatus();
  }
  const size_t tab = report_.find('\t');
  if (tab == std::string::npos)
    return absl::InternalError("the coordinator did not report its run folder");
  const bool first = run_dir_.empty();
  address_ = report_.substr(0, tab);
  run_dir_ = report_.substr(tab + 1, report_.size() - tab - 2);
  // The job of a coordinator that has exited is over; that of one that was killed is recovered.
  const auto ended = ended_.find(kCoordinatorProcess);
  if (ended != ended_.end() && !ended->second.killed_by_signal()) return absl::OkStatus();
  if (first) {
    RETURN_IF_ERROR(OpenLog());
    RETURN_IF_ERROR(MakeNodePrograms());
  }
  core_.OnReady(launcher_.Now());
  return absl::OkStatus();
}

NetworkHost Supervisor::HostOfServer(size_t server) const {
  if (server < job_.server_hosts.size()) return job_.server_hosts[server];
  const size_t hosts = job_.hosts.size();
  if (!job_.beside_workers || server < job_.workers || hosts <= job_.workers) {
    return HostOf(server);
  }
  return HostOf(job_.workers + (server - job_.workers) % (hosts - job_.workers));
}

NetworkHost Supervisor::HostOfWorker(size_t worker) const {
  if (worker < job_.worker_hosts.size()) return job_.worker_hosts[worker];
  return HostOf(job_.beside_workers ? worker : job_.servers + job_.spare_servers + worker);
}

GpuShare Supervisor::GpuShareOf(uint32_t worker) const {
  if (!job_.elsewhere) return {worker, job_.workers};
  GpuShare share = {.worker = 0, .workers = 0};
  for (uint32_t i = 0; i < job_.workers; ++i) {
    if (HostOfWorker(i).name != HostOfWorker(worker).name) continue;
    if (i < worker) ++share.worker;
    ++share.workers;
  }
  return share;
}

absl::Status Supervisor::OpenLog() const {
  std::error_code error;
  if (!job_.keeps_log || !std::filesystem::exists(run_dir_, error)) return absl::OkStatus();
  const std::filesystem::path logs = std::filesystem::path(run_dir_) / kLogFolder;
  RETURN_IF_ERROR(MakeFolder(logs));
  SetLogProcess(kLauncherProcess);
  RETURN_IF_ERROR(SetLogFile(logs / absl::StrCat(kLauncherProcess, ".log")));
  // Started before the run folder was known.
  LogStart(kCoordinatorProcess, coordinator_pid_);
  return absl::OkStatus();
}

absl::Status Supervisor::MakeNodePrograms() {
  const std::filesystem::path logs = job_.log_folder.empty()
                                         ? std::filesystem::path(run_dir_) / kLogFolder
                                         : std::filesystem::path(job_.log_folder);
  std::error_code error;
  std::filesystem::create_directories(logs, error);
  if (error) return FileError(error.value(), "make the folder", logs.string());
  struct Nodes {
    const char* kind;
    uint32_t count;
    const std::vector<std::vector<int>>& cores;
    bool listens;
  };
  for (const auto& [kind, count, cores, listens] :
       {Nodes{kServerRole, job_.servers + job_.spare_servers, job_.server_cores, true},
        {kWorkerRole, job_.workers, job_.worker_cores, false}}) {
    for (uint32_t i = 0; i < count; ++i) {
      Program program;
      program.name = ProcessName(kind, i);
      program.argv = {job_.executable, kind, "--name", program.name, "--coordinator", address_};
      program.ignores_stop = !job_.nodes_may_leave;
      const NetworkHost host = listens ? HostOfServer(i) : HostOfWorker(i);
      program.host = host.name;
      if (listens && !job_.hosts.empty()) {
        program.argv.push_back("--listen");
        program.argv.push_back(host.address);
      }
      if (!listens) {
        program.argv.push_back("--gpu-share");
        const GpuShare share = GpuShareOf(i);
        program.argv.push_back(GpuShareText(share));
        if (job_.elsewhere && share.workers > 1) {
          program.argv.push_back("--core-share");
          program.argv.push_back(GpuShareText(share));
        }
      }
      // A spare server shares the cores of a server it may replace.
      const uint32_t place = listens && i >= job_.servers ? i % job_.servers : i;
      if (place < cores.size()) program.cores = cores[place];
      program.log_path = (logs / (program.name + ".log")).string();
      std::filesystem::remove(program.log_path, error);  // left by the run being resumed
      programs_[program.name] = std::move(program);
    }
  }
  return absl::OkStatus();
}

absl::Status Supervisor::Start(Program program) {
  if (!job_.security.keys.none()) program.keys = KeyFileText(job_.security.keys);
  if (job_.elsewhere) {
    ASSIGN_OR_RETURN(program, job_.elsewhere(program, run_dir_));
  }
  ASSIGN_OR_RETURN(const pid_t pid, launcher_.Start(program));
  if (program.name == kCoordinatorProcess) coordinator_pid_ = pid;
  LogStart(program.name, pid);
  return absl::OkStatus();
}

void Supervisor::KillAll() {
  if (job_.elsewhere) {
    launcher_.SignalAll(SIGTERM);
    const absl::Time deadline = launcher_.Now() + kKillTime;
    while (launcher_.running_count() > 0 && launcher_.Now() < deadline) NoteInterrupt(deadline);
  }
  launcher_.KillAll();
}

absl::Status Supervisor::StatusOf(const EndJob& end) {
  switch (end.why) {
    case EndJob::Why::kDone:
      break;
    case EndJob::Why::kCoordinatorFailed:
      return absl::AbortedError(absl::StripPrefix(
          job_.coordinator_log.empty() ? "" : LastWords(job_.coordinator_log), "tug: error: "));
    case EndJob::Why::kProcessLost:
      return LostProcess(ended_[end.process]);
    case EndJob::Why::kNoAddress:
      return absl::InternalError("the coordinator did not report its address: see its output");
    case EndJob::Why::kCancelled:
      return absl::CancelledError("interrupted before the job had started");
    case EndJob::Why::kInterruptedTwice:
      return absl::AbortedError(
          absl::StrCat("interrupted twice: all processes were killed; ", ResumeHint()));
  }
  return absl::OkStatus();
}

absl::Status Supervisor::LostProcess(const Ended& process) const {
  std::string said;
  if (!process.log_path.empty() && !process.connection_lost()) said = LastWords(process.log_path);
  if (StandardErrorIsTerminal()) WriteStandardError("\n");  // below the progress line
  return absl::AbortedError(
      absl::StrCat(process.Who(), " ", process.How(), KillHint(process),
                   said.empty() ? "" : absl::StrCat(" (last output: ", said, ")"),
                   "; the job was stopped; ", ResumeHint()));
}

std::string Supervisor::ResumeHint() const {
  const absl::StatusOr<FoundCheckpoint> newest = FindCheckpoint(run_dir_);
  std::vector<std::string> words = job_.command;
  words.insert(words.end(), {"--resume", run_dir_});
  const std::string command = ShellCommand(words);
  // The run folder of a remote job may not be visible here.
  if (job_.elsewhere && !run_dir_.empty() && !newest.ok()) {
    return absl::StrCat("if there is a checkpoint, resume with: ", command);
  }
  if (run_dir_.empty() || absl::IsNotFound(newest.status())) {
    return "no checkpoint was written yet: start the job again";
  }
  if (!newest.ok()) return std::string(newest.status().message());
  return absl::StrCat("resume with: ", command, " (step ", newest->manifest.version(), ")");
}

std::vector<std::string> TrainCommand(const LocalJob& job) {
  std::vector<std::string> words = SetWords(job.overrides);
  words.insert(words.begin(), {"tug", "train", job.job_file});
  return words;
}

}  // namespace

absl::Status RunLocalJob(const LocalJob& job) {
  LocalJob settled = job;
  if (settled.command.empty()) settled.command = TrainCommand(job);
  RETURN_IF_ERROR(Settle(settled.security, IsExposed(job)));
  if (!settled.security.keys.none()) settled.overrides.push_back(ModeOverride(settled.security));
  return Supervisor(settled).Run();
}

}  // namespace tug
