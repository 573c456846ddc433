#ifndef TUG_SIMULATE_CLUSTER_H_
#define TUG_SIMULATE_CLUSTER_H_

// A whole job in one process and in virtual time: the production coordinator, shards, exchanges and
// step machines over a seeded network that delays, reorders, repeats and loses messages. Only the
// threads, the sockets, the clock and the model are replaced; a gradient is a cheap pure function
// of the weights, the virtual worker and the clock, so the final weights tell whether every push
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
#include "coordinator/coordinator.h"
#include "exchange/segment_table.h"
#include "launch/supervisor_core.h"
#include "proto/job.pb.h"
#include "server/shard.h"
#include "simulate/fault_event.h"
#include "simulate/planted_bug.h"
#include "simulate/run_watch.h"
#include "simulate/simulated_store.h"
#include "transport/simulated_network.h"

namespace tug {

// What a share of a step counts as: it is divided by this.
inline constexpr uint64_t kSimulatedTokens = 8;

struct SimulationOptions {
  JobConfig config;  // all fields filled; the model and data parts are not read
  BlockTable blocks;
  uint64_t seed = 1;
  SimulatedNetwork::Options network;
  absl::Duration max_control_delay = absl::Milliseconds(5);
  absl::Duration max_compute = absl::Milliseconds(3);  // of one block
  // Adds a NaN to the gradient that this virtual worker pushes for block 0 at this clock; none if
  // the clock is ~0.
  uint32_t poisoned_virtual_worker = 0;
  uint64_t poisoned_clock = ~uint64_t{0};
  // Of each lane: memory for sums that wait (ShardOptions).
  uint64_t parking_bytes = kServerParkingBytes;
  // Whether lanes read the pushes of every second worker in that worker's memory.
  bool shared_memory = false;
  // Nodes are on so many hosts, in turn as they are started (RegisterRequest.host_id). 0: not
  // known.
  uint32_t hosts = 0;
  // How often a node changes, by itself, to a random schedule: at a computation of a worker, at a
  // tick of a server. With comm.scheduler AUTO, the coordinator's changes come on top.
  double schedule_change_probability = 0;
  // Gradients that do not depend on the weights: then the sum of what lanes applied says what they
  // applied, whatever the order.
  bool gradient_of_weights = true;
  // How long nodes wait between two heartbeats.
  absl::Duration beat_interval = absl::Milliseconds(20);
  // In order of time.
  std::vector<FaultEvent> faults;
  // With a quick_death of zero, processes may end any number of times.
  SupervisorOptions supervision = {.report_time = absl::Milliseconds(200),
                                   .quick_death = absl::ZeroDuration(),
                                   .exit_time = absl::Seconds(1)};
  absl::Duration longest = absl::Hours(10);  // in virtual time
  PlantedBug plant = PlantedBug::kNone;
  RunWatch* watch = nullptr;  // outlives the run
  // Where its checkpoints are, and those of the run that it resumes: it begins with the newest.
  // Outlives the run; null: a new one.
  SimulatedStore* store = nullptr;
  // What happens, for people.
  std::function<void(absl::Duration at, const std::string& text)> say = {};
  // When the user interrupts the job, in virtual time; never if infinite.
  absl::Duration stop_after = absl::InfiniteDuration();
};

struct SimulationResult {
  absl::Status status;  // of the job; DEADLINE_EXCEEDED if it does not end in virtual hours
  uint64_t final_version = 0;
  std::vector<std::vector<float>> weights;  // by block
  std::vector<double> losses;               // by step
  std::vector<std::string> notices;
  std::vector<uint64_t> checkpoints;  // versions committed
  uint64_t messages = 0;
  uint64_t repeats = 0;  // pushes and pulls that lanes recognised
  uint64_t resent = 0;
  uint64_t deferred = 0;      // pushes that a lane had no memory for at first
  uint64_t pushed_bytes = 0;  // payloads, repeats included
  // With placement.kind ZERO2 and ZERO3, at a time: pushes of a worker whose gradient it keeps.
  uint64_t most_unreceived = 0;
  uint64_t most_held_bytes = 0;    // by the sums of one lane at a time
  uint64_t most_cached_bytes = 0;  // of weights that one lane kept for its host
  uint64_t schedule_changes = 0;   // by nodes, asked for or by themselves
  uint64_t trials = 0;             // of the tuner
  uint64_t most_push_bytes = 0;    // outstanding of one worker at a time
  uint64_t most_answer_bytes = 0;  // outstanding of one lane to one worker at a time
  std::vector<uint64_t> steps;     // by virtual worker: taken
  uint64_t skipped = 0;            // steps of virtual workers
  uint64_t most_lead = 0;  // clocks that a virtual worker, beginning a step, was ahead of the
                           // last one that the slowest had pushed
  // Updates of each segment; ~0 if they differ.
  uint64_t updates = 0;
  uint64_t dropped_pushes = 0;
  uint64_t most_staleness = 0;  // of an update
  // By worker and block: the weights that the last evaluation read.
  std::vector<std::vector<std::vector<float>>> evaluated;
  std::vector<std::vector<uint64_t>> evaluated_versions;  // and of which steps they are
  std::array<uint64_t, kFaultKinds> faults = {};          // that met somebody, by kind
  uint64_t fenced = 0;  // nodes that ended since the job had gone on without them
  // Of the last checkpoint: weights by block, and by segment SegmentSnapshot::clocks, where every
  // push is an update.
  std::vector<std::vector<float>> saved_weights;
  std::vector<std::vector<uint64_t>> saved_clocks;
  // By block: the residuals of all virtual workers that it has, added up.
  std::vector<std::vector<float>> saved_residuals;
  uint64_t most_held_beyond_bytes = 0;  // most_held_bytes, but beyond a lane's segments and parking
  std::vector<std::string> broken_checkpoints;  // what is wrong with one that was committed
  // Hash of every block of every checkpoint that was committed.
  WeightsByVersion checkpoint_hashes;
  // What was told to people, and is not so (told.h).
  std::vector<std::string> untrue;
  // For so long the job made no progress, though nothing befell it.
  absl::Duration longest_stall;
  bool killed = false;      // all of it, at once: by a fault, or by its supervisor
  uint64_t first_step = 0;  // that of the checkpoint that the run resumes
  uint32_t timelines = 1;
  uint64_t start_version = 0;    // of the last timeline
  bool stopped_waiting = false;  // asked to stop before it had begun, or while it was to go back
  absl::Duration virtual_time;
};

// The gradient, at a weight of 0, of the elements of a block: multiples of 1/256 from -0.5 to 0.5,
// so that sums of some thousands of them are exact in any order. Pure.
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

// A job of which processes die goes on as in reality: the state machines of views and timelines and
// the supervisor (launch/supervisor_core.h) are the production ones too. What lanes write of
// checkpoints is kept in memory.
//
// Runs one job to its end. Deterministic: a function of the options.
SimulationResult Simulate(const SimulationOptions& options);

}  // namespace tug

#endif  // TUG_SIMULATE_CLUSTER_H_
