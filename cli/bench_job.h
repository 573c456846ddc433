#ifndef TUG_CLI_BENCH_JOB_H_
#define TUG_CLI_BENCH_JOB_H_

// A job made by hand for `tug bench`: no coordinator, no model; blocks of one partition each, real
// lanes and real workers in processes of their own.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/bench_processes.h"
#include "proto/control.pb.h"
#include "security/job_keys.h"
#include "server/lane.h"

namespace tug {

enum class BenchOp { kPush, kPull, kPushPull };

// Random: jobs of one host must not be taken for one another.
uint64_t NewBenchJobNumber();

struct BenchSetting {
  uint64_t job = NewBenchJobNumber();
  std::string transport = "tcp";       // or "shm", shared memory
  uint64_t bytes = uint64_t{4} << 20;  // of a partition in FP32, a power of two
  uint32_t blocks = 16;                // of one partition each; at least lanes in all
  uint32_t servers = 1;
  uint32_t lanes = 1;  // per server
  uint32_t workers = 1;
  uint32_t virtual_workers_per_worker = 1;
  bool checksum = true;
  bool bf16 = false;       // push and pull
  bool optimizer = false;  // whether the lanes run AdamW
  uint64_t credit_bytes = uint64_t{32} << 20;
  // Network namespaces; empty = ours.
  std::string server_host;
  std::string worker_host;
  JobKeys keys;

  uint64_t payload_bytes() const { return bf16 ? bytes / 2 : bytes; }
  uint64_t parameters() const { return blocks * (bytes / sizeof(float)); }
  uint32_t virtual_workers() const { return workers * virtual_workers_per_worker; }
};

// What a worker does with its virtual workers' gradients of every block, clock after clock.
struct BenchLoad {
  BenchOp op = BenchOp::kPushPull;
  uint32_t outstanding = 16;  // blocks on their way at a time, at most `blocks`
  // Whether the worker drives the Exchange machine and the transport from its own thread, or is a
  // user of ExchangeClient, which has a thread for that. Pulls alone need the machine.
  bool through_client = true;
  // For orders of arrival that cost a server memory: every second worker begins a clock late, every
  // second one takes the blocks backwards, the last one begins late.
  enum class Order { kTogether, kEvenFirst, kBackwards, kStraggler };
  Order order = Order::kTogether;
  absl::Duration late_by = absl::Milliseconds(100);
};

// The job as lanes and workers need it. `leave_out_update` unless the setting has an optimizer.
absl::StatusOr<std::unique_ptr<LaneJob>> MakeBenchJob(const BenchSetting& setting,
                                                      uint32_t server_node_id);

// View 1: lanes in order of server, block b on lane b mod lanes. `endpoints`: of all lanes.
View MakeBenchView(const BenchSetting& setting, const std::vector<std::string>& endpoints);

// Starts the servers; their number among `processes` is that of their order. Returns the endpoints
// of all lanes, which serve by then or soon.
absl::StatusOr<std::vector<std::string>> StartBenchServers(const BenchSetting& setting,
                                                           BenchProcesses& processes);

// bench_worker.cc. Starts the workers, which exchange without end. Latency series 0: push to its
// first answer, received or committed (the machine only), or for pulls alone pull to weights;
// series 1: push to committed. An operation is a partition pushed, pulled, or both.
absl::Status StartBenchWorkers(const BenchSetting& setting, const BenchLoad& load,
                               const std::vector<std::string>& endpoints,
                               BenchProcesses& processes);

// Servers and workers, measured.
absl::StatusOr<BenchWindow> MeasureExchange(const BenchSetting& setting, const BenchLoad& load,
                                            const BenchWindowOptions& options);

}  // namespace tug

#endif  // TUG_CLI_BENCH_JOB_H_
