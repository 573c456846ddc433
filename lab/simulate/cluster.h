// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_CLUSTER_H_
#define TUG_LAB_SIMULATE_CLUSTER_H_

// A whole job in one process and in virtual time: the production coordinator, shards, exchanges and
// step machines over a seeded network that delays, reorders, repeats and loses messages. Only the
// threads, the sockets, the clock and the model are replaced. A gradient is a cheap pure function
// of the weights, the virtual worker and the clock, so the final weights show whether every push
// was applied exactly once, to the right version, in the right order.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/time_source.h"
#include "blocks/segment_table.h"
#include "coordinator/coordinator.h"
#include "lab/simulate/checks/run_watch.h"
#include "lab/simulate/fault_event.h"
#include "lab/simulate/planted_bug.h"
#include "lab/simulate/simulated_store.h"
#include "launch/supervisor_core.h"
#include "proto/job.pb.h"
#include "server/shard/shard.h"
#include "transport/simulated/simulated_network.h"

namespace tug {

// Token count of a virtual worker's share of a step, by which it is divided.
inline constexpr uint64_t kSimulatedTokens = 8;

struct SimulationOptions {
  JobConfig config;  // all fields filled; the model and data parts are not read
  BlockTable blocks;
  uint64_t seed = 1;
  SimulatedNetwork::Options network;
  absl::Duration max_control_delay = absl::Milliseconds(5);
  absl::Duration max_compute = absl::Milliseconds(3);  // per block
  // Adds a NaN to the gradient that this virtual worker pushes for block 0 at this clock; never if
  // the clock is ~0.
  uint32_t poisoned_virtual_worker = 0;
  uint64_t poisoned_clock = ~uint64_t{0};
  // Parking of each lane, for sums that wait (ShardOptions).
  uint64_t parking_bytes = kServerParkingBytes;
  // Whether lanes read the pushes of every second worker in that worker's memory.
  bool shared_memory = false;
  // Number of hosts, assigned to nodes in turn as they start (RegisterRequest.host_id). 0: unknown.
  uint32_t hosts = 0;
  // Probability that a node changes, by itself, to a random schedule: per computation of a worker,
  // per tick of a server. With comm.scheduler AUTO, the coordinator's changes are additional.
  double schedule_change_probability = 0;
  // Whether gradients depend on the weights. If not, the sum of the applied gradients shows which
  // were applied, whatever the order.
  bool gradient_of_weights = true;
  // Time between two heartbeats of a node.
  absl::Duration beat_interval = absl::Milliseconds(20);
  // Sorted by time.
  std::vector<FaultEvent> faults;
  // With a quick_death of zero, processes may exit any number of times.
  SupervisorOptions supervision = {.report_time = absl::Milliseconds(200),
                                   .quick_death = absl::ZeroDuration(),
                                   .exit_time = absl::Seconds(1)};
  absl::Duration longest = absl::Hours(10);  // in virtual time
  PlantedBug plant = PlantedBug::kNone;
  RunWatch* watch = nullptr;  // outlives the run
  // Contains the checkpoints of the run, and of the run that it resumes: it begins with the newest.
  // Outlives the run; null: a new one.
  SimulatedStore* store = nullptr;
  // Receives a log of the run, for the user.
  std::function<void(absl::Duration at, const std::string& text)> say = {};
  // Virtual time at which the user interrupts the job; infinite: never.
  absl::Duration stop_after = absl::InfiniteDuration();
};

struct SimulationResult {
  absl::Status status;  // of the job; DEADLINE_EXCEEDED if it does not end
  uint64_t final_version = 0;
  std::vector<std::vector<float>> weights;  // by block
  std::vector<double> losses;               // by step
  std::vector<std::string> notices;
  std::vector<uint64_t> checkpoints;  // versions committed
  uint64_t messages = 0;
  uint64_t repeats = 0;  // pushes and pulls that lanes recognised
  uint64_t resent = 0;
  uint64_t deferred = 0;      // pushes that a lane first deferred for lack of memory
  uint64_t pushed_bytes = 0;  // payloads, repeats included
  // With placement.kind ZERO2 and ZERO3: peak number of pushes whose gradient a worker keeps.
  uint64_t peak_unreceived = 0;
  uint64_t peak_held_bytes = 0;    // peak of the sums of one lane
  uint64_t peak_cached_bytes = 0;  // peak of the weights that one lane cached for its host
  uint64_t schedule_changes = 0;   // by nodes, ordered or by themselves
  uint64_t trials = 0;             // of the tuner
  uint64_t peak_push_bytes = 0;    // peak outstanding bytes of one worker
  uint64_t peak_answer_bytes = 0;  // peak outstanding bytes of one lane to one worker
  std::vector<uint64_t> steps;     // taken, by virtual worker
  uint64_t skipped = 0;            // steps of virtual workers
  uint64_t max_lead = 0;  // max clocks that a virtual worker, beginning a step, led the last one
                          // that the slowest had pushed
  // Updates of each segment; ~0 if they differ.
  uint64_t updates = 0;
  uint64_t dropped_pushes = 0;
  uint64_t most_staleness = 0;  // of an update
  // By worker and block: weights read by the last evaluation.
  std::vector<std::vector<std::vector<float>>> evaluated;
  std::vector<std::vector<uint64_t>> evaluated_versions;  // steps of these weights
  std::array<uint64_t, kFaultKinds> faults = {};          // that took effect, by kind
  uint64_t fenced = 0;  // nodes that ended because the job had continued without them
  // Last checkpoint: weights by block, and SegmentSnapshot::clocks by segment, where every push is
  // an update.
  std::vector<std::vector<float>> saved_weights;
  std::vector<std::vector<uint64_t>> saved_clocks;
  // Last checkpoint: sum of the residuals of all virtual workers, by block.
  std::vector<std::vector<float>> saved_residuals;
  uint64_t peak_held_beyond_bytes = 0;  // peak_held_bytes beyond a lane's segments and parking
  std::vector<std::string> broken_checkpoints;  // defects of committed checkpoints
  // Hash of every block of every committed checkpoint.
  WeightsByVersion checkpoint_hashes;
  // False user-facing statements (checks/told.h).
  std::vector<std::string> untrue;
  // Longest time without progress while no fault was active.
  absl::Duration longest_stall;
  bool killed = false;      // all processes at once: by a fault, or by the supervisor
  uint64_t first_step = 0;  // step of the checkpoint that the run resumes
  uint32_t timelines = 1;
  uint64_t start_version = 0;    // of the last timeline
  bool stopped_waiting = false;  // asked to stop before it had begun, or while it was rolling back
  absl::Duration virtual_time;
};

// Gradient of a block's elements at a weight of 0: multiples of 1/256 from -0.5 to 0.5, so that
// sums of some thousands of them are exact in any order. Pure.
class SimulatedGradients {
 public:
  SimulatedGradients(uint32_t virtual_worker, uint64_t clock, uint32_t block)
      : seed_(Mix(Mix(Mix(virtual_worker + 1) + static_cast<uint32_t>(clock)) + block)) {}
  float operator[](uint64_t element) const {
    const uint32_t bits = Mix(seed_ + static_cast<uint32_t>(element) * 0x9E3779B9u);
    return static_cast<float>(static_cast<int32_t>(bits >> 24) - 128) * (1.0f / 256.0f);
  }

 private:
  static uint32_t Mix(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
  }
  uint32_t seed_;
};
float SimulatedGradient(uint32_t virtual_worker, uint64_t clock, uint32_t block, uint64_t element);

// A job whose processes die continues as in reality: the state machines of views and timelines and
// the supervisor (launch/supervisor_core.h) are the production ones too. Checkpoints of lanes are
// kept in memory.
//
// Runs one job to its end. Deterministic: a function of the options.
SimulationResult Simulate(const SimulationOptions& options);

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_CLUSTER_H_
