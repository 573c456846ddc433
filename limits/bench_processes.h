// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LIMITS_BENCH_PROCESSES_H_
#define TUG_LIMITS_BENCH_PROCESSES_H_

// Processes that work until they are killed, and measurement of their progress. Processes, since
// two threads of one process would share an allocator and a page table, which flatters the results.
//
//   BenchProcesses processes;
//   RETURN_IF_ERROR(processes.Start("receiver", "", Receive));
//   ASSIGN_OR_RETURN(std::string port, processes.Hear(0));
//   RETURN_IF_ERROR(processes.Start("sender", "", [=](BenchChild& child) { ... }));
//   ASSIGN_OR_RETURN(BenchWindow window, processes.Measure(options));
//
// The children count in memory shared with the parent. The parent reads the counts and the
// children's CPU clocks at both ends of a window: no messages are exchanged during the measurement.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tug {

// Number of latency series; the measured code defines them.
inline constexpr size_t kLatencySeries = 2;

// Progress of one process since its start. One process writes, others read.
struct BenchTally {
  static constexpr uint64_t kKept = 1 << 15;  // newest latencies kept per series
  struct Latencies {
    std::atomic<uint64_t> count;
    std::atomic<uint32_t> ns[kKept];  // latency number n at n % kKept
  };
  std::atomic<uint64_t> there_bytes;  // payload, worker to server
  std::atomic<uint64_t> back_bytes;   // payload, server to worker
  std::atomic<uint64_t> operations;   // messages, or partitions
  Latencies latencies[kLatencySeries];

  void Count(uint64_t there, uint64_t back, uint64_t done);
  void AddLatency(size_t series, int64_t ns);
};

// A child's connection to its parent.
class BenchChild {
 public:
  BenchChild(BenchTally& tally, int fd) : tally_(tally), fd_(fd) {}
  BenchTally& tally() { return tally_; }
  // Sends one line to the parent's Hear.
  void Say(const std::string& line);
  // Waits for a line of the parent's Tell. CANCELLED: the parent has exited.
  absl::StatusOr<std::string> Listen();

 private:
  BenchTally& tally_;
  const int fd_;
};

struct BenchWindowOptions {
  absl::Duration warm_up = absl::Milliseconds(300);  // after the first operation
  absl::Duration length = absl::Seconds(2);
  // Called in the parent about every `look_every` from start to end; may be empty.
  std::function<void()> look;
  absl::Duration look_every = absl::Milliseconds(2);
};

// Results of all processes together over a window of time.
struct BenchWindow {
  double seconds = 0;
  uint64_t there_bytes = 0;
  uint64_t back_bytes = 0;
  uint64_t operations = 0;
  double cpu_seconds = 0;
  std::array<std::vector<double>, kLatencySeries> latencies_us;

  double GigabytesPerSecond() const;
};

// Not thread-safe. REQUIRES: the process has one thread.
class BenchProcesses {
 public:
  using Body = std::function<absl::Status(BenchChild&)>;

  BenchProcesses() = default;
  // Kills and reaps all children.
  ~BenchProcesses();
  BenchProcesses(const BenchProcesses&) = delete;
  BenchProcesses& operator=(const BenchProcesses&) = delete;

  // Forks; `body` runs in the child. If it ends before it is killed, the next wait of the parent
  // fails. `host`: a network namespace under /run/netns, empty = ours. The child dies with its
  // parent.
  absl::Status Start(const std::string& name, const std::string& host, Body body);
  // Next line from child number `child`. Errors: the child's failure; DEADLINE_EXCEEDED: no line
  // within `patience`.
  absl::StatusOr<std::string> Hear(size_t child, absl::Duration patience = absl::Seconds(30));
  void Tell(size_t child, const std::string& line);
  absl::StatusOr<BenchWindow> Measure(const BenchWindowOptions& options);
  pid_t pid(size_t child) const { return children_[child].pid; }

 private:
  struct Child {
    std::string name;
    pid_t pid = -1;
    int fd = -1;
    BenchTally* tally = nullptr;
    std::string heard;  // incomplete line
  };
  struct Reading;

  absl::Status Watch(absl::Time until, const BenchWindowOptions& options);
  // Reads available bytes; an error if the child has failed or ended.
  absl::Status Read(Child& child);
  Reading Look() const;

  std::vector<Child> children_;
};

// First IPv4 address of this process's network: 127.0.0.1 unless it entered a `host`.
absl::StatusOr<std::string> BenchAddress(const std::string& host);

int64_t MonotonicNs();

}  // namespace tug

#endif  // TUG_LIMITS_BENCH_PROCESSES_H_
