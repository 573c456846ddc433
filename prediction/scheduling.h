// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PREDICTION_SCHEDULING_H_
#define TUG_PREDICTION_SCHEDULING_H_

// Predicts the step time of a replayed job on a given network, in virtual time: workers that
// compute as in a profile, lanes that sum and update, and the classes that schedule the real
// exchange (scheduler/credit_queue.h, blocks/partitioner.h, server/pulls/answer_queue.h).
// Synchronous training. Models the slowdown of a straggler, but not its pauses; the wait for
// clipping, but not the lanes' messages.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tug {

// The network and the machines. Every worker and every server is a host with one full-duplex link
// to a switch that is never the bottleneck.
struct SimulatedHosts {
  double link_bytes_per_second = 0;    // per host, each way, headers excluded
  double latency_seconds = 0;          // per message, in addition to its transmission
  double queue_seconds = 0.02;         // that a link queues before its senders wait
  double unevenness = 1;               // of streams that share a link (chunk_network.h); 1: none
  double message_seconds = 0;          // time of a worker or lane per message
  double server_bytes_per_second = 0;  // FP32 gradients that a lane sums and updates; 0: no time
  // FP32 values that a worker encodes, one partition after the other, before it sends them, and
  // that it decodes after a pull; 0: no time.
  double encode_bytes_per_second = 0;
  double decode_bytes_per_second = 0;
};

// Hosts as deploy/testbed makes them: processes that wake each other up (`latency_seconds`), queues
// of 20 ms, TCP. `unevenness`, without which workers keep step as they never do, and
// `message_seconds` brought predictions nearest to the steps of 45 runs measured there, on two busy
// cores: the shipped profiles on 4 workers, 2 servers, links of 200 Mbit/s, transfers of 0.5 to 2
// times the computation, partitions of 16 to 128 KiB.
inline SimulatedHosts TestbedHosts(double link_bytes_per_second) {
  return {.link_bytes_per_second = link_bytes_per_second,
          .latency_seconds = 2e-4,
          .queue_seconds = 0.02,
          .unevenness = 10,
          .message_seconds = 6e-5};
}

// Time that a block of one worker is computed or in flight, for plots.
struct SimulatedSpan {
  enum class Kind { kForward, kBackward, kPush, kPull };
  Kind kind = Kind::kForward;
  uint32_t block = 0;
  double begin_seconds = 0;  // from the beginning of the backward pass of a step
  double end_seconds = 0;
};

struct SchedulingPrediction {
  double step_seconds = 0;           // mean over the steps after the first few, which lack history
  double compute_seconds = 0;        // of which forward and backward
  double exposed_seconds = 0;        // of which waiting for weights
  std::vector<SimulatedSpan> spans;  // of one step of worker 0, sorted by begin; partitions
};

// Predicts the steps of `job`, which is complete (config/job_config.h), with compute REPLAY and its
// profile resolved. Deterministic. With `unevenness` 1 workers that are alike keep step, and one is
// simulated for all: that is many times faster, but predicts PRIORITY a quarter too fast where one
// late block dominates. Errors: INVALID_ARGUMENT for a job that is not a replay or not BSP.
absl::StatusOr<SchedulingPrediction> PredictScheduling(const JobConfig& job,
                                                       const SimulatedHosts& hosts);

// Number of message chunks that PredictScheduling would move, which determines its running time:
// some millions are moved per second. Errors: as PredictScheduling.
absl::StatusOr<double> SimulatedChunks(const JobConfig& job, const SimulatedHosts& hosts);

// Lower bound for all schedules: the critical path of the fluid schedule. Bytes are infinitely
// divisible, cost nothing except transmission on the links of one host of each kind, and a gradient
// can be pulled as weights the moment it is pushed. For each direction of a link by itself, sending
// the most urgent available block is optimal (earliest due date with release times and preemption:
// Horn 1974); the bound is the slowest of the links. `spans` are those of that link.
absl::StatusOr<SchedulingPrediction> FluidBound(const JobConfig& job, double link_bytes_per_second);

}  // namespace tug

#endif  // TUG_PREDICTION_SCHEDULING_H_
