// SPDX-License-Identifier: Apache-2.0
#include "limits/bench_processes.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "process/network_host.h"

namespace tug {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);  // until the first operation
constexpr absl::Duration kGlance = absl::Milliseconds(20);
constexpr char kFailed[] = "failed: ";

double CpuSeconds(pid_t pid) {
  clockid_t clock;
  timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void WriteAll(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the peer has exited, which is detected elsewhere
    at += static_cast<size_t>(n);
  }
}

[[noreturn]] void RunChild(const std::string& host, pid_t parent, int fd, BenchTally& tally,
                           const BenchProcesses::Body& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  BenchChild child(tally, fd);
  absl::Status status = EnterNetworkHost(host);
  if (status.ok()) status = body(child);
  child.Say(absl::StrCat(kFailed, status.ok() ? "ended" : std::string(status.message())));
  _exit(1);  // Do not flush or destroy copies of the parent's objects.
}

}  // namespace

int64_t MonotonicNs() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void BenchTally::Count(uint64_t there, uint64_t back, uint64_t done) {
  const auto add = [](std::atomic<uint64_t>& to, uint64_t n) {  // single writer: no locked addition
    to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  };
  add(there_bytes, there);
  add(back_bytes, back);
  add(operations, done);
}

void BenchTally::AddLatency(size_t series, int64_t ns) {
  Latencies& kept = latencies[series];
  const uint64_t n = kept.count.load(std::memory_order_relaxed);
  kept.ns[n % kKept].store(static_cast<uint32_t>(std::min<int64_t>(ns, UINT32_MAX)),
                           std::memory_order_relaxed);
  kept.count.store(n + 1, std::memory_order_release);
}

void BenchChild::Say(const std::string& line) { WriteAll(fd_, line + "\n"); }

absl::StatusOr<std::string> BenchChild::Listen() {
  std::string line;
  char c;
  while (recv(fd_, &c, 1, 0) == 1) {
    if (c == '\n') return line;
    line += c;
  }
  return absl::CancelledError("the parent process exited");
}

double BenchWindow::GigabytesPerSecond() const {
  return static_cast<double>(there_bytes + back_bytes) * 1e-9 / seconds;
}

// All counts at one instant.
struct BenchProcesses::Reading {
  int64_t at_ns = 0;
  uint64_t there_bytes = 0;
  uint64_t back_bytes = 0;
  uint64_t operations = 0;
  double cpu_seconds = 0;
  std::vector<std::array<uint64_t, kLatencySeries>> latencies;  // by child
};

BenchProcesses::~BenchProcesses() {
  for (const Child& child : children_) kill(child.pid, SIGKILL);
  for (const Child& child : children_) {
    while (waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    close(child.fd);
    munmap(child.tally, sizeof(BenchTally));
  }
}

absl::Status BenchProcesses::Start(const std::string& name, const std::string& host, Body body) {
  void* const shared =
      mmap(nullptr, sizeof(BenchTally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int fds[2];
  if (shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start ", name, ": ", std::strerror(errno)));
  }
  auto* const tally = new (shared) BenchTally();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start ", name, ": ", std::strerror(errno)));
  }
  if (pid == 0) {
    close(fds[0]);
    RunChild(host, parent, fds[1], *tally, body);
  }
  close(fds[1]);
  children_.push_back({name, pid, fds[0], tally, ""});
  return absl::OkStatus();
}

absl::Status BenchProcesses::Read(Child& child) {
  char text[4096];
  const ssize_t n = recv(child.fd, text, sizeof(text), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return absl::OkStatus();
  if (n <= 0) return absl::AbortedError(absl::StrCat(child.name, " was killed"));
  child.heard.append(text, static_cast<size_t>(n));
  if (!absl::StartsWith(child.heard, kFailed) || child.heard.back() != '\n') {
    return absl::OkStatus();
  }
  const size_t begin = sizeof(kFailed) - 1;
  return absl::AbortedError(
      absl::StrCat(child.name, ": ", child.heard.substr(begin, child.heard.size() - begin - 1)));
}

absl::StatusOr<std::string> BenchProcesses::Hear(size_t child_index, absl::Duration patience) {
  Child& child = children_[child_index];
  const absl::Time deadline = SteadyNow() + patience;
  while (child.heard.find('\n') == std::string::npos) {
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - SteadyNow());
    if (left_ms <= 0) {
      return absl::DeadlineExceededError(
          absl::StrCat(child.name, " sent no message for ", absl::FormatDuration(patience)));
    }
    pollfd wait{child.fd, POLLIN, 0};
    poll(&wait, 1, static_cast<int>(left_ms));
    RETURN_IF_ERROR(Read(child));
  }
  const size_t end = child.heard.find('\n');
  std::string line = child.heard.substr(0, end);
  child.heard.erase(0, end + 1);
  return line;
}

void BenchProcesses::Tell(size_t child, const std::string& line) {
  WriteAll(children_[child].fd, line + "\n");
}

absl::Status BenchProcesses::Watch(absl::Time until, const BenchWindowOptions& options) {
  std::vector<pollfd> waits;
  for (const Child& child : children_) waits.push_back({child.fd, POLLIN, 0});
  while (true) {
    const absl::Duration left = until - SteadyNow();
    if (left <= absl::ZeroDuration()) return absl::OkStatus();
    if (options.look) options.look();
    const timespec wait =
        absl::ToTimespec(options.look ? std::min(left, options.look_every) : left);
    if (ppoll(waits.data(), waits.size(), &wait, nullptr) <= 0) continue;
    for (Child& child : children_) RETURN_IF_ERROR(Read(child));
  }
}

BenchProcesses::Reading BenchProcesses::Look() const {
  Reading reading;
  reading.at_ns = MonotonicNs();
  for (const Child& child : children_) {
    reading.there_bytes += child.tally->there_bytes.load(std::memory_order_relaxed);
    reading.back_bytes += child.tally->back_bytes.load(std::memory_order_relaxed);
    reading.operations += child.tally->operations.load(std::memory_order_relaxed);
    reading.cpu_seconds += CpuSeconds(child.pid);
    auto& counts = reading.latencies.emplace_back();
    for (size_t s = 0; s < kLatencySeries; ++s) {
      counts[s] = child.tally->latencies[s].count.load(std::memory_order_acquire);
    }
  }
  return reading;
}

absl::StatusOr<BenchWindow> BenchProcesses::Measure(const BenchWindowOptions& options) {
  const absl::Time deadline = SteadyNow() + kPatience;
  while (Look().operations == 0) {
    if (SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "no data arrived for ", absl::FormatDuration(kPatience),
          options.look ? "" : ": check that the link is up and passes messages of this size"));
    }
    RETURN_IF_ERROR(Watch(SteadyNow() + kGlance, options));
  }
  RETURN_IF_ERROR(Watch(SteadyNow() + options.warm_up, options));
  const Reading begin = Look();
  RETURN_IF_ERROR(Watch(SteadyNow() + options.length, options));
  const Reading end = Look();

  BenchWindow window;
  window.seconds = static_cast<double>(end.at_ns - begin.at_ns) * 1e-9;
  window.there_bytes = end.there_bytes - begin.there_bytes;
  window.back_bytes = end.back_bytes - begin.back_bytes;
  window.operations = end.operations - begin.operations;
  window.cpu_seconds = end.cpu_seconds - begin.cpu_seconds;
  for (size_t c = 0; c < children_.size(); ++c) {
    for (size_t s = 0; s < kLatencySeries; ++s) {
      const BenchTally::Latencies& kept = children_[c].tally->latencies[s];
      const uint64_t last = end.latencies[c][s];
      // Omit those that the child may have overwritten since, with some margin.
      const uint64_t first =
          std::max(begin.latencies[c][s], last - std::min(last, BenchTally::kKept * 7 / 8));
      for (uint64_t n = first; n < last; ++n) {
        window.latencies_us[s].push_back(
            kept.ns[n % BenchTally::kKept].load(std::memory_order_relaxed) * 1e-3);
      }
    }
  }
  return window;
}

absl::StatusOr<std::string> BenchAddress(const std::string& host) {
  if (host.empty()) return std::string("127.0.0.1");
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return absl::InternalError("cannot list network addresses");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, freeifaddrs);
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    if ((at->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text)) != nullptr) return text;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("host '", host, "' has no address; run `deploy/testbed up` again"));
}

}  // namespace tug
