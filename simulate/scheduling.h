#ifndef TUG_SIMULATE_SCHEDULING_H_
#define TUG_SIMULATE_SCHEDULING_H_

// The step time of a replayed job on a given network, worked out in virtual time: workers that
// compute as a profile says, lanes that sum and update, and the classes that schedule the real
// exchange (scheduler/credit_queue.h, scheduler/partitioner.h, server/answer_queue.h). Synchronous
// training; of a straggler its slowdown, not the pauses; of clipping the wait, not the lanes' word.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tug {

// The network and the machines. Every worker and every server is a host of its own, with one
// full-duplex link to a switch that is never short.
struct SimulatedHosts {
  double link_bytes_per_second = 0;    // of a host, each way, headers excluded
  double latency_seconds = 0;          // of a message, besides its transmission
  double queue_seconds = 0.02;         // that a link queues before its senders must wait
  double unevenness = 1;               // of streams that share a link (chunk_network.h); 1: none
  double message_seconds = 0;          // of a worker's or lane's time for a message
  double server_bytes_per_second = 0;  // of FP32 gradients that a lane sums and updates; 0: at once
  // Of FP32 values that a worker encodes, one partition after the other, before it sends them, and
  // that it decodes of what it pulled; 0: at once.
  double encode_bytes_per_second = 0;
  double decode_bytes_per_second = 0;
};

// Hosts as deploy/testbed makes them: processes that wake each other up (`latency_seconds`), queues
// of 20 ms, TCP. `unevenness`, without which workers keep step as they never do, and
// `message_seconds` are what brought predictions nearest to the steps of 45 runs measured there, on
// two busy cores: the shipped profiles on 4 workers, 2 servers, links of 200 Mbit/s, transfers of
// 0.5 to 2 times the computation, partitions of 16 to 128 KiB.
inline SimulatedHosts TestbedHosts(double link_bytes_per_second) {
  return {.link_bytes_per_second = link_bytes_per_second,
          .latency_seconds = 2e-4,
          .queue_seconds = 0.02,
          .unevenness = 10,
          .message_seconds = 6e-5};
}

// Where a block is on its way, of one worker, for pictures.
struct SimulatedSpan {
  enum class Kind { kForward, kBackward, kPush, kPull };
  Kind kind = Kind::kForward;
  uint32_t block = 0;
  double begin_seconds = 0;  // from the beginning of the backward pass of a step
  double end_seconds = 0;
};

struct SchedulingPrediction {
  double step_seconds = 0;     // mean over the steps after the first few, which have no history
  double compute_seconds = 0;  // of which forward and backward
  double exposed_seconds = 0;  // of which waiting for weights
  std::vector<SimulatedSpan> spans;  // of one step of worker 0, in order of begin; partitions
};

// Predicts the steps of `job`, complete (proto/job_config.h), with compute REPLAY and its profile
// resolved. Deterministic. With `unevenness` 1 workers that are alike keep step, and one is
// simulated for all: that is many times faster, and takes PRIORITY for a quarter faster than it is
// where one late block dominates. Errors: INVALID_ARGUMENT for a job that is no replay or not BSP.
absl::StatusOr<SchedulingPrediction> PredictScheduling(const JobConfig& job,
                                                       const SimulatedHosts& hosts);

// How many chunks of messages PredictScheduling would move, by which it is known how long it would
// take: some millions a second. Errors: as PredictScheduling.
absl::StatusOr<double> SimulatedChunks(const JobConfig& job, const SimulatedHosts& hosts);

// No schedule is faster: the critical path of the fluid schedule. Bytes are infinitely divisible,
// cost nothing but transmission on the links of one host of each kind, and a gradient can be pulled
// as weights the moment it is pushed. Each direction of a link alone, the more urgent block first
// as soon as it is there, is optimal for it (earliest due date with release times and preemption:
// Horn 1974); the bound is the slowest of the links. `spans` are those of that link.
absl::StatusOr<SchedulingPrediction> FluidBound(const JobConfig& job, double link_bytes_per_second);

}  // namespace tug

#endif  // TUG_SIMULATE_SCHEDULING_H_
