// SPDX-License-Identifier: Apache-2.0
// Runs seeds in several processes.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lab/simulate/fault_run.h"

namespace tug {
namespace {

// A process that runs every jobs-th seed, and writes the results of each in lines:
//   begin SEED
//   violation TEXT
//   end FENCED ROLLBACKS RESUMED MESSAGES FAULTS...
struct Process {
  pid_t pid = -1;
  int read_fd = -1;
  uint64_t next_seed = 0;  // not known to have begun
  bool in_run = false;
  FaultOutcome outcome;  // of the current run
  std::string text;      // not parsed yet
};

void WriteAll(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) _exit(1);  // the reader is gone
    done += static_cast<size_t>(n);
  }
}

[[noreturn]] void RunSeeds(const FaultRuns& runs, uint64_t seed, int fd) {
  FaultRunner runner;
  for (; seed < runs.first_seed + runs.runs; seed += runs.jobs) {
    WriteAll(fd, absl::StrCat("begin ", seed, "\n"));
    const FaultOutcome outcome = runner.Run(MakeScenario(seed, runs.conjunction), runs.plant);
    std::string text;
    for (const std::string& violation : outcome.violations) {
      absl::StrAppend(&text, "violation ", absl::StrJoin(absl::StrSplit(violation, '\n'), " "),
                      "\n");
    }
    absl::StrAppend(&text, "end ", outcome.fenced, " ", outcome.rollbacks, " ", outcome.resumed,
                    " ", outcome.messages);
    for (const uint64_t count : outcome.faults) absl::StrAppend(&text, " ", count);
    WriteAll(fd, text + "\n");
  }
  _exit(0);
}

absl::Status Start(const FaultRuns& runs, Process& process) {
  int fds[2];
  if (pipe(fds) != 0) return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  std::fflush(nullptr);
  process.pid = fork();
  if (process.pid < 0) return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  if (process.pid == 0) {
    close(fds[0]);
    RunSeeds(runs, process.next_seed, fds[1]);
  }
  close(fds[1]);
  process.read_fd = fds[0];
  process.in_run = false;
  process.text.clear();
  return absl::OkStatus();
}

void TakeLine(const FaultRuns& runs, const std::string& line, Process& process,
              std::vector<FaultOutcome>& outcomes) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  const auto number = [&](size_t i) {
    uint64_t value = 0;
    if (i < words.size() && !absl::SimpleAtoi(words[i], &value)) value = 0;
    return value;
  };
  if (words[0] == "begin") {
    process.outcome = {};
    process.outcome.seed = number(1);
    process.next_seed = process.outcome.seed + runs.jobs;
    process.in_run = true;
  } else if (words[0] == "violation") {
    process.outcome.violations.push_back(line.substr(words[0].size() + 1));
  } else if (words[0] == "end") {
    process.outcome.fenced = number(1);
    process.outcome.rollbacks = number(2);
    process.outcome.resumed = number(3);
    process.outcome.messages = number(4);
    for (size_t f = 0; f < kFaultKinds; ++f) process.outcome.faults[f] = number(5 + f);
    process.in_run = false;
    outcomes.push_back(std::move(process.outcome));
  }
}

void End(Process& process, bool kill_it) {
  if (process.pid < 0) return;
  if (kill_it) kill(process.pid, SIGKILL);
  close(process.read_fd);
  while (waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  process.pid = -1;
}

// Reads its output; true once it has ended.
bool Read(const FaultRuns& runs, Process& process, std::vector<FaultOutcome>& outcomes) {
  char buffer[4096];
  const ssize_t n = read(process.read_fd, buffer, sizeof(buffer));
  if (n < 0 && errno == EINTR) return false;
  if (n <= 0) return true;
  process.text.append(buffer, static_cast<size_t>(n));
  size_t begin = 0;
  for (size_t end = process.text.find('\n'); end != std::string::npos;
       end = process.text.find('\n', begin)) {
    TakeLine(runs, process.text.substr(begin, end - begin), process, outcomes);
    begin = end + 1;
  }
  process.text.erase(0, begin);
  return false;
}

}  // namespace

absl::Status RunFaultSeeds(const FaultRuns& runs,
                           const std::function<bool(const FaultOutcome&)>& on_outcome) {
  std::vector<Process> processes(std::min<uint64_t>(runs.jobs, runs.runs));
  FaultRuns strided = runs;
  strided.jobs = static_cast<uint32_t>(processes.size());
  for (size_t i = 0; i < processes.size(); ++i) {
    processes[i].next_seed = runs.first_seed + i;
    if (const absl::Status started = Start(strided, processes[i]); !started.ok()) return started;
  }
  bool enough = false;
  while (!enough) {
    std::vector<pollfd> fds;
    for (const Process& process : processes) {
      if (process.pid >= 0) fds.push_back({process.read_fd, POLLIN, 0});
    }
    if (fds.empty()) break;
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
      return absl::InternalError(absl::StrCat("poll: ", std::strerror(errno)));
    }
    std::vector<FaultOutcome> outcomes;
    for (Process& process : processes) {
      const auto ready = std::find_if(fds.begin(), fds.end(), [&](const pollfd& fd) {
        return process.pid >= 0 && fd.fd == process.read_fd && fd.revents != 0;
      });
      if (ready == fds.end() || !Read(strided, process, outcomes)) continue;
      End(process, false);
      if (!process.in_run) {
        if (process.next_seed >= runs.first_seed + runs.runs) continue;
        return absl::InternalError(absl::StrCat("a simulation process exited before seed ",
                                                process.next_seed,
                                                ": check that the machine has enough memory"));
      }
      process.outcome.violations.push_back("a check failed: the process exited during the run");
      outcomes.push_back(std::move(process.outcome));
      if (process.next_seed >= runs.first_seed + runs.runs) continue;
      if (const absl::Status again = Start(strided, process); !again.ok()) return again;
    }
    for (const FaultOutcome& outcome : outcomes) {
      if (!enough) enough = !on_outcome(outcome);
    }
  }
  for (Process& process : processes) End(process, true);
  return absl::OkStatus();
}

}  // namespace tug
