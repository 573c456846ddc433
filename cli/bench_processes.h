#ifndef TUG_CLI_BENCH_PROCESSES_H_
#define TUG_CLI_BENCH_PROCESSES_H_

// Processes that work until they are killed, and a look at what they get done: two threads of one
// process would share an allocator and a page table, and flatter.
//
//   BenchProcesses processes;
//   RETURN_IF_ERROR(processes.Start("receiver", "", Receive));
//   ASSIGN_OR_RETURN(std::string port, processes.Hear(0));
//   RETURN_IF_ERROR(processes.Start("sender", "", [=](BenchChild& child) { ... }));
//   ASSIGN_OR_RETURN(BenchWindow window, processes.Measure(options));
//
// The children count in memory they share with the parent, which reads the counts, and their CPU
// clocks, at both ends of a window: nothing is said while the measurement runs.

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

// Two kinds of latency are kept apart: what they are is said by who adds them.
inline constexpr size_t kLatencySeries = 2;

// What one process has done since its start. One process writes, others read.
struct BenchTally {
  static constexpr uint64_t kKept = 1 << 15;  // newest latencies of a series
  struct Latencies {
    std::atomic<uint64_t> count;
    std::atomic<uint32_t> ns[kKept];  // number n at n % kKept
  };
  std::atomic<uint64_t> there_bytes;  // payload, worker to server
  std::atomic<uint64_t> back_bytes;   // payload, server to worker
  std::atomic<uint64_t> operations;   // messages, or partitions
  Latencies latencies[kLatencySeries];

  void Count(uint64_t there, uint64_t back, uint64_t done);
  void AddLatency(size_t series, int64_t ns);
};

// What a child knows of its parent.
class BenchChild {
 public:
  BenchChild(BenchTally& tally, int fd) : tally_(tally), fd_(fd) {}
  BenchTally& tally() { return tally_; }
  // One line for the parent's Hear.
  void Say(const std::string& line);
  // Waits for a line of the parent's Tell. CANCELLED: the parent has gone.
  absl::StatusOr<std::string> Listen();

 private:
  BenchTally& tally_;
  const int fd_;
};

struct BenchWindowOptions {
  absl::Duration warm_up = absl::Milliseconds(300);  // from the first thing done
  absl::Duration length = absl::Seconds(2);
  // Called about every `look_every` from the start to the end, in the parent; may be empty.
  std::function<void()> look;
  absl::Duration look_every = absl::Milliseconds(2);
};

// All processes together, in a window of time.
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
  // Kills and reaps all.
  ~BenchProcesses();
  BenchProcesses(const BenchProcesses&) = delete;
  BenchProcesses& operator=(const BenchProcesses&) = delete;

  // Forks; `body` runs in the child. Its end before it is killed is an error of whoever waits.
  // `host`: a network namespace under /run/netns, empty = ours. The child dies with its parent.
  absl::Status Start(const std::string& name, const std::string& host, Body body);
  // The next line that child number `child` says. Errors: what the child has failed of;
  // DEADLINE_EXCEEDED: it has said nothing for so long.
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
    std::string heard;  // not yet a whole line
  };
  struct Reading;

  absl::Status Watch(absl::Time until, const BenchWindowOptions& options);
  // Reads what has come; an error if the child has failed or ended.
  absl::Status Read(Child& child);
  Reading Look() const;

  std::vector<Child> children_;
};

// First IPv4 address of the network that this process is in: 127.0.0.1 unless it entered a `host`.
absl::StatusOr<std::string> BenchAddress(const std::string& host);

int64_t MonotonicNs();

}  // namespace tug

#endif  // TUG_CLI_BENCH_PROCESSES_H_
