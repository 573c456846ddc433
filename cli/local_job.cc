#include "cli/local_job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "base/stop_wishes.h"
#include "checkpoint/checkpoint.h"
#include "cli/gpu_share.h"
#include "cli/job_arguments.h"
#include "cli/launcher.h"
#include "cli/log_format.h"
#include "cli/pipe.h"
#include "cli/shell_word.h"
#include "coordinator/run_folder.h"
#include "security/key_file.h"
#include "security/security_rules.h"

namespace tug {
namespace {

constexpr char kCoordinator[] = "coordinator";
constexpr char kSpare[] = "--spare";
constexpr absl::Duration kKillTime =
    absl::Seconds(3);  // for hosts elsewhere to say that it is done

// Whether processes listen elsewhere than on loopback, as far as we know.
bool IsExposed(const LocalJob& job) {
  if (job.elsewhere) return true;
  const auto exposed = [](const NetworkHost& host) { return !IsLoopback(host.address); };
  return std::any_of(job.hosts.begin(), job.hosts.end(), exposed) ||
         std::any_of(job.server_hosts.begin(), job.server_hosts.end(), exposed);
}

// A process that SIGKILL ends cannot say why, and the kernel sends it for lack of memory; gRPC ends
// its process by SIGABRT without a word where it gets no thread. Empty for other ends.
std::string KillHint(const Ended& ended) {
  const int signal = ended.killed_by_signal() ? WTERMSIG(ended.wait_status) : 0;
  if (signal == SIGKILL) return " (if nobody killed it, memory may have run out: see dmesg there)";
  if (signal == SIGABRT) {
    return " (if it said nothing, it got no memory or thread: raise the limits, ulimit -v and -u)";
  }
  return "";
}

class Supervisor {
 public:
  explicit Supervisor(const LocalJob& job) : job_(job) {}

  absl::Status Run() {
    absl::Status end = StartCoordinator(CoordinatorArguments());
    if (!end.ok()) {
      KillAll();
      return end;
    }
    const bool over = ended_.has_value() && !ended_->killed_by_signal();
    if (!over && !run_dir_.empty()) end = StartNodes();
    if (end.ok()) end = Watch();
    KillAll();
    if (!run_dir_.empty() && !may_live_) TidyRunFolder();
    Wait(absl::InfinitePast());  // an interrupt that came last
    if (job_.interrupt_is_error && interrupts_.count() > 0)
      return absl::CancelledError("interrupted");
    return end;
  }

 private:
  // The launcher's; counts interrupts.
  LaunchEvent Wait(absl::Time deadline, int readable_fd = -1) {
    LaunchEvent event = launcher_.Wait(deadline, {readable_fd});
    if (event.interrupted) event.interrupted = interrupts_.Add(launcher_.Now());
    return event;
  }
  // Of number `place`, when they are dealt in order.
  NetworkHost HostOf(size_t place) const {
    if (job_.hosts.empty()) return {.address = "127.0.0.1"};
    return job_.hosts[place % job_.hosts.size()];
  }
  NetworkHost HostOfServer(size_t server) const;
  NetworkHost HostOfWorker(size_t worker) const;
  // Among the workers of its machine.
  GpuShare GpuShareOf(uint32_t worker) const;
  // `arguments` follow `tug coordinator`. OK: it has told address and run folder, or has ended.
  absl::Status StartCoordinator(std::vector<std::string> arguments);
  std::vector<std::string> CoordinatorArguments() const;
  absl::Status ReadAddress(int fd);
  void TidyRunFolder() const;
  // Of a coordinator that was killed. OK: another one has taken the job up, or has ended, too.
  absl::Status TakeUp(const Ended& coordinator);
  absl::Status StartNodes();
  absl::Status StartNode(const std::string& name);
  // OK: another node runs in its place, or it was not to be.
  absl::Status Replace(const Ended& node);
  absl::Status Watch();
  // None: another one has taken the job up.
  std::optional<absl::Status> CoordinatorEnded(const Ended& coordinator);
  // By a coordinator whose connection is lost: waits for the nodes to end with the job.
  absl::Status EndedElsewhere(const Ended& coordinator);
  // None: the job goes on.
  std::optional<absl::Status> NodeFailed(const Ended& node);
  absl::Status KilledByUser();
  // Also those that run elsewhere, whose connections may be gone.
  void KillAll();
  absl::Status Start(Program program);
  // Whether a process that was killed is not to be started again, with this death.
  struct Deaths {
    absl::Time started_at;
    int quick = 0;  // in a row
  };
  bool DiesAgainAndAgain(Deaths& deaths, const Ended& ended) const;
  LaunchEvent NextEvent();
  absl::Status Killed(const Ended& process) const;
  std::string ResumeHint() const;

  const LocalJob& job_;
  Launcher launcher_;
  std::string address_;
  std::string run_dir_;         // empty until the coordinator has told it
  std::optional<Ended> ended_;  // something that ended before the job was under way
  struct Node {
    Program program;
    Deaths deaths;
  };
  Deaths coordinator_;
  std::map<std::string, Node> nodes_;  // by name
  std::deque<Ended> waiting_;          // nodes that ended while another's end was looked into
  StopWishes interrupts_;
  bool may_live_ = false;  // the coordinator, elsewhere: then it clears up by itself
};

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

absl::Status Supervisor::StartCoordinator(std::vector<std::string> arguments) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot make a pipe: ", std::strerror(errno)));
  }
  const FileDescriptor read_end(fds[0]);
  FileDescriptor write_end(fds[1]);
  Program program;
  program.name = kCoordinator;
  program.host = HostOf(0).name;
  program.log_path = job_.coordinator_log;
  program.argv = {job_.executable, kCoordinator, "--ready-fd", std::to_string(write_end.get())};
  program.argv.insert(program.argv.end(), arguments.begin(), arguments.end());
  if (job_.security.keys_made) program.argv.push_back("--keep-keys");
  program.keep_fd = write_end.get();
  FileDescriptor text;
  if (job_.job_text.has_value()) {
    ASSIGN_OR_RETURN(text, InMemory(*job_.job_text));
    program.input_fd = text.get();
  }
  coordinator_.started_at = launcher_.Now();
  RETURN_IF_ERROR(Start(program));
  write_end = FileDescriptor();  // so that its end is seen when the coordinator dies
  return ReadAddress(read_end.get());
}

void Supervisor::TidyRunFolder() const {
  // A job that was resumed meanwhile owns the folder: what is in it is its.
  const absl::StatusOr<OwnedRunFolder> owned = OwnRunFolder(run_dir_);
  if (!owned.ok()) return;
  RemoveCoordinatorAddress(run_dir_);
  std::error_code ignored;  // the nodes are gone: there is nothing to take up
  std::filesystem::remove(std::filesystem::path(run_dir_) / kJournalFile, ignored);
  if (job_.security.keys_made) RemoveKeys(run_dir_);
}

absl::Status Supervisor::TakeUp(const Ended& coordinator) {
  Tell(absl::StrCat("the ", coordinator.Who(), " ", coordinator.How(),
                    ": another one takes the job up", KillHint(coordinator)));
  const int interrupts = interrupts_.count();
  RETURN_IF_ERROR(StartCoordinator({"--take-up", run_dir_}));
  // The one that was killed may not have heard of it.
  if (interrupts > 0) launcher_.Signal(kCoordinator, SIGINT);
  return absl::OkStatus();
}

bool Supervisor::DiesAgainAndAgain(Deaths& deaths, const Ended& ended) const {
  // One that could not join has looked for the coordinator as long as it may.
  const bool failed = !ended.killed_by_signal() && !ended.connection_lost();
  const absl::Duration quick_death =
      job_.quick_death + (failed ? job_.join_time : absl::ZeroDuration());
  const bool quick = ended.at - deaths.started_at < quick_death;
  deaths.quick = quick ? deaths.quick + 1 : 0;
  return deaths.quick >= kMostQuickDeaths;
}

// Until the coordinator has told address and run folder, or has ended.
absl::Status Supervisor::ReadAddress(int fd) {
  const bool first = run_dir_.empty();
  std::string line;
  while (line.empty() || line.back() != '\n') {
    LaunchEvent event;
    if (!ended_.has_value()) event = Wait(absl::InfiniteFuture(), fd);
    if (event.ended.has_value() && event.ended->name == kCoordinator) {
      ended_ = std::move(event.ended);  // it may have told before
    } else if (event.ended.has_value()) {
      waiting_.push_back(*std::move(event.ended));  // a node, while the job is taken up
      continue;
    }
    if (event.interrupted && first) {
      return absl::CancelledError("interrupted before the job had started");
    }
    if (event.interrupted) {
      if (interrupts_.count() > 1) return KilledByUser();
      launcher_.Signal(kCoordinator, SIGINT);
      continue;
    }
    char bytes[1024];
    const ssize_t got = read(fd, bytes, sizeof(bytes));
    if (got <= 0) break;  // it is about to end, and will say why
    line.append(bytes, static_cast<size_t>(got));
  }
  if (line.empty()) {
    if (!ended_.has_value()) ended_ = Wait(launcher_.Now() + job_.exit_time).ended;
    return ended_.has_value() ? absl::OkStatus()
                              : absl::InternalError("the coordinator did not tell its address");
  }
  const size_t tab = line.find('\t');
  if (tab == std::string::npos) return absl::InternalError("the coordinator told no run folder");
  address_ = line.substr(0, tab);
  run_dir_ = line.substr(tab + 1, line.size() - tab - 2);
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

absl::Status Supervisor::StartNodes() {
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
       {Nodes{"server", job_.servers + job_.spare_servers, job_.server_cores, true},
        {"worker", job_.workers, job_.worker_cores, false}}) {
    for (uint32_t i = 0; i < count; ++i) {
      Program program;
      program.name = absl::StrCat(kind, "-", i);
      program.argv = {job_.executable, kind, "--coordinator", address_};
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
      const bool spare = listens && i >= job_.servers;
      if (spare) program.argv.push_back(kSpare);
      // A spare one will have those of a server whose place it takes, or nearly so.
      const uint32_t place = spare ? i % job_.servers : i;
      if (place < cores.size()) program.cores = cores[place];
      program.log_path = (logs / (program.name + ".log")).string();
      std::filesystem::remove(program.log_path, error);  // of the run that is resumed
      const std::string name = program.name;
      nodes_[name].program = std::move(program);
      RETURN_IF_ERROR(StartNode(name));
    }
  }
  return absl::OkStatus();
}

absl::Status Supervisor::StartNode(const std::string& name) {
  Node& node = nodes_[name];
  node.deaths.started_at = launcher_.Now();
  return Start(node.program);
}

absl::Status Supervisor::Start(Program program) {
  if (!job_.security.keys.none()) program.keys = KeyFileText(job_.security.keys);
  if (!job_.elsewhere) return launcher_.Start(program).status();
  ASSIGN_OR_RETURN(const Program stand_in, job_.elsewhere(program, run_dir_));
  return launcher_.Start(stand_in).status();
}

absl::Status Supervisor::Replace(const Ended& ended) {
  if (DiesAgainAndAgain(nodes_[ended.name].deaths, ended)) return Killed(ended);
  // Its place may be another's by now.
  std::vector<std::string>& argv = nodes_[ended.name].program.argv;
  if (argv[1] == "server" && argv.back() != kSpare) argv.push_back(kSpare);
  Tell(absl::StrCat(ended.Who(), " ", ended.How(), ": another is started in its place",
                    KillHint(ended)));
  return StartNode(ended.name);
}

LaunchEvent Supervisor::NextEvent() {
  if (ended_.has_value()) return {std::exchange(ended_, std::nullopt), false};
  if (waiting_.empty()) return Wait(absl::InfiniteFuture());
  LaunchEvent event{std::move(waiting_.front()), false};
  waiting_.pop_front();
  return event;
}

absl::Status Supervisor::Watch() {
  while (true) {
    const LaunchEvent event = NextEvent();
    if (event.interrupted) {
      if (interrupts_.count() > 1) return KilledByUser();
      launcher_.Signal(kCoordinator, SIGINT);
    }
    if (!event.ended.has_value()) continue;
    std::optional<absl::Status> end;
    if (event.ended->name == kCoordinator) {
      end = CoordinatorEnded(*event.ended);
    } else if (!event.ended->exited_with_zero()) {
      end = NodeFailed(*event.ended);
    }
    if (end.has_value()) return *end;
  }
}

void Supervisor::KillAll() {
  if (job_.elsewhere) {
    launcher_.SignalAll(SIGTERM);
    const absl::Time deadline = launcher_.Now() + kKillTime;
    while (launcher_.running_count() > 0 && launcher_.Now() < deadline) Wait(deadline);
  }
  launcher_.KillAll();
}

absl::Status Supervisor::KilledByUser() {
  KillAll();
  return absl::AbortedError(
      absl::StrCat("interrupted twice: all processes were killed; ", ResumeHint()));
}

std::optional<absl::Status> Supervisor::CoordinatorEnded(const Ended& coordinator) {
  if (coordinator.connection_lost()) return EndedElsewhere(coordinator);
  if (coordinator.killed_by_signal()) {
    if (run_dir_.empty() || DiesAgainAndAgain(coordinator_, coordinator))
      return Killed(coordinator);
    const absl::Status taken_up = TakeUp(coordinator);
    if (taken_up.ok()) return std::nullopt;
    return taken_up;
  }
  if (coordinator.status_unknown) return Killed(coordinator);
  if (!coordinator.exited_with_zero()) {
    if (job_.coordinator_log.empty()) return absl::AbortedError("");
    const std::string said = LastWords(job_.coordinator_log);
    return absl::AbortedError(absl::StripPrefix(said, "tug: error: "));
  }
  const absl::Time deadline = launcher_.Now() + job_.exit_time;
  while (launcher_.running_count() > 0) {
    const LaunchEvent event = Wait(deadline);
    if (event.interrupted || !event.ended.has_value()) break;
    if (!event.ended->exited_with_zero()) {
      Warn(absl::StrCat(event.ended->name, " ", event.ended->How(),
                        " after the job was done: ", LastWords(event.ended->log_path)));
    }
  }
  return absl::OkStatus();
}

absl::Status Supervisor::EndedElsewhere(const Ended& coordinator) {
  may_live_ = true;
  const absl::Time deadline = launcher_.Now() + job_.lost_time;
  while (launcher_.running_count() > 0 && launcher_.Now() < deadline) {
    if (Wait(deadline).interrupted && interrupts_.count() > 1) return KilledByUser();
  }
  return Killed(coordinator);
}

std::optional<absl::Status> Supervisor::NodeFailed(const Ended& node) {
  const absl::Time deadline = launcher_.Now() + job_.report_time;
  while (!node.killed_by_signal()) {
    const LaunchEvent event = Wait(deadline);
    if (event.interrupted) {
      if (interrupts_.count() > 1) return KilledByUser();
      launcher_.Signal(kCoordinator, SIGINT);
      continue;
    }
    if (!event.ended.has_value()) break;
    if (event.ended->name != kCoordinator) {
      waiting_.push_back(*event.ended);
      continue;
    }
    // Exit code 0: the job was done all the same.
    const std::optional<absl::Status> end = CoordinatorEnded(*event.ended);
    if (end.has_value()) return end;
  }
  const absl::Status replaced = Replace(node);
  if (replaced.ok()) return std::nullopt;
  return replaced;
}

absl::Status Supervisor::Killed(const Ended& process) const {
  std::string said;
  if (!process.log_path.empty() && !process.connection_lost()) said = LastWords(process.log_path);
  if (StandardErrorIsTerminal()) WriteStandardError("\n");  // below the progress line
  return absl::AbortedError(
      absl::StrCat(process.Who(), " ", process.How(),
                   said.empty() ? "" : absl::StrCat(" (it said last: ", said, ")"),
                   ", so the job was ended", KillHint(process), "; ", ResumeHint()));
}

std::string Supervisor::ResumeHint() const {
  const absl::StatusOr<FoundCheckpoint> newest = FindCheckpoint(run_dir_);
  std::vector<std::string> words = job_.command;
  words.insert(words.end(), {"--resume", run_dir_});
  const std::string command = ShellCommand(words);
  // The run folder of a job elsewhere may be out of sight.
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
