// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_BENCH_BENCH_JOB_H_
#define TUG_LAB_BENCH_BENCH_JOB_H_

// A synthetic job for `tug bench`: no coordinator, no model; blocks of one partition each, real
// lanes and real workers in separate processes.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "limits/bench_processes.h"
#include "proto/control.pb.h"
#include "security/job_keys.h"
#include "server/lane.h"

namespace tug {

enum class BenchOp { kPush, kPull, kPushPull };

// A random number, so that concurrent jobs of one host do not mix.
uint64_t NewBenchJobNumber();

struct BenchSetting {
  uint64_t job = NewBenchJobNumber();
  std::string transport = "tcp";       // or "shm", shared memory
  uint64_t bytes = uint64_t{4} << 20;  // of a partition in FP32; a power of two
  uint32_t blocks = 16;                // of one partition each; at least the total number of lanes
  uint32_t servers = 1;
  uint32_t lanes = 1;  // per server
  uint32_t workers = 1;
  uint32_t virtual_workers_per_worker = 1;
  bool checksum = true;
  bool bf16 = false;       // push and pull
  bool optimizer = false;  // whether the lanes run AdamW
  uint64_t credit_bytes = uint64_t{32} << 20;
  // Network namespaces of servers and workers; empty = ours.
  std::string server_host;
  std::string worker_host;
  JobKeys keys;

  uint64_t payload_bytes() const { return bf16 ? bytes / 2 : bytes; }
  uint64_t parameters() const { return blocks * (bytes / sizeof(float)); }
  uint32_t virtual_workers() const { return workers * virtual_workers_per_worker; }
};

// Work of a worker with its virtual workers' gradients of all blocks, clock after clock.
struct BenchLoad {
  BenchOp op = BenchOp::kPushPull;
  uint32_t outstanding = 16;  // blocks in flight at a time, at most `blocks`
  // Whether the worker uses ExchangeClient, which has a thread to drive the exchange, or drives the
  // Exchange machine and the transport on its own thread. Pulls alone need the latter.
  bool through_client = true;
  // Orders of arrival that need server memory: odd workers begin each clock late, odd workers send
  // their blocks backwards, or the last worker begins late.
  enum class Order { kTogether, kEvenFirst, kBackwards, kStraggler };
  Order order = Order::kTogether;
  absl::Duration late_by = absl::Milliseconds(100);
};

// The job as lanes and workers need it. Sets `leave_out_update` unless the setting has an
// optimizer.
absl::StatusOr<std::unique_ptr<LaneJob>> MakeBenchJob(const BenchSetting& setting,
                                                      uint32_t server_node_id);

// View 1: lanes in order of server, block b on lane b mod lanes. `endpoints`: of all lanes.
View MakeBenchView(const BenchSetting& setting, const std::vector<std::string>& endpoints);

// Starts the servers, which are the first of `processes`, in order. Returns the endpoints of all
// lanes, which are then ready or about to be.
absl::StatusOr<std::vector<std::string>> StartBenchServers(const BenchSetting& setting,
                                                           BenchProcesses& processes);

// Defined in bench_worker.cc. Starts the workers, which exchange without end. Latency series 0:
// push to its first reply, received or committed (with the machine only), or for pulls alone pull
// to weights; series 1: push to committed. An operation is a partition pushed, pulled, or both.
absl::Status StartBenchWorkers(const BenchSetting& setting, const BenchLoad& load,
                               const std::vector<std::string>& endpoints,
                               BenchProcesses& processes);

// Starts servers and workers, and measures them.
absl::StatusOr<BenchWindow> MeasureExchange(const BenchSetting& setting, const BenchLoad& load,
                                            const BenchWindowOptions& options);

}  // namespace tug

#endif  // TUG_LAB_BENCH_BENCH_JOB_H_
