// SPDX-License-Identifier: Apache-2.0
// StepMachine under any policy, with weights in any order and of any version.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "config/sync_mode.h"
#include "proto/job.pb.h"
#include "worker/core/step_machine.h"

namespace tug {
namespace {

// A worker whose lanes are random. Invariants: a push is computed from weights for its clock, every
// virtual worker takes or skips each of its clocks exactly once and in order, and the machine
// finishes.
class RandomJob {
 public:
  RandomJob(SyncConfig::Policy policy, uint64_t seed) : random_(seed), mode_(SyncModeOf(policy)) {
    options_.blocks = 1 + Below(4);
    options_.virtual_workers = 1 + Below(4);
    options_.micro_batches = 1 + Below(2);
    options_.local_steps = 1 + Below(2);
    options_.mode = mode_;
    options_.eval_interval = Below(4);
    options_.eval_micro_batches = [](uint32_t v, bool last) { return last ? v % 3 : v % 2; };
    options_.start_version = Below(3);
    const uint64_t spread = mode_.skips_steps ? 1 : 4;
    for (uint32_t v = 0; v < options_.virtual_workers; ++v) {
      options_.start_clocks.push_back(options_.start_version + Below(spread));
    }
    taken_ = options_.start_clocks;
  }

  void Run() {
    StepMachine machine(options_);
    std::vector<PullOrder> open;  // by block
    std::vector<bool> is_open(options_.blocks, true);
    for (uint32_t b = 0; b < options_.blocks; ++b) open.push_back({b, machine.clock(), false});
    StepGate gate{.paused = false};
    machine.SetGate(gate);
    for (int turn = 0; machine.next() != StepMachine::Next::kFinished; ++turn) {
      ASSERT_LT(turn, 100000) << "comes to no end";
      if (turn == 300) {
        machine.SetGate({.paused = true});
        gate = Final(machine);
      }
      if (Below(10) == 0 || machine.next() == StepMachine::Next::kWaitGate) machine.SetGate(gate);
      const bool arrives = Below(3) == 0 || machine.next() == StepMachine::Next::kWaitWeights;
      const auto block = Below(options_.blocks);
      if (arrives && is_open[block]) {
        is_open[block] = false;
        Arrive(machine, open[block]);
        NoteSkipped(machine);
      }
      if (machine.next() == StepMachine::Next::kPull) {
        const PullOrder order = machine.pull();
        ASSERT_FALSE(is_open[order.block]);
        open[order.block] = order;
        is_open[order.block] = true;
        machine.OnPulling();
      } else if (machine.next() == StepMachine::Next::kCompute) {
        const Compute compute = machine.compute();
        ASSERT_FALSE(is_open[compute.block]) << "computes while weights are written";
        if (compute.phase != ComputePhase::kEvaluate) {
          ASSERT_EQ(here_[compute.block], compute.clock);
        } else if (machine.evaluating_last() && mode_.update_per_push) {
          ASSERT_TRUE(exact_[compute.block]);
        }
        const StepEffects effects = machine.OnComputeDone();
        if (effects.push) ++pushed_;
        if (effects.pull) {
          ASSERT_FALSE(is_open[effects.pull->block]);
          open[effects.pull->block] = *effects.pull;
          is_open[effects.pull->block] = true;
        }
        if (effects.virtual_worker_done) {
          ASSERT_EQ(pushed_, options_.blocks);
          pushed_ = 0;
          ASSERT_EQ(taken_[compute.virtual_worker]++, compute.clock);
        }
        NoteSkipped(machine);
      }
    }
    for (uint32_t v = 0; v < options_.virtual_workers; ++v) {
      const uint64_t end = gate.final_clocks[v];
      EXPECT_EQ(taken_[v], std::max(end, options_.start_clocks[v]));
    }
  }

 private:
  uint32_t Below(uint64_t n) { return static_cast<uint32_t>(random_() % n); }

  void Arrive(StepMachine& machine, const PullOrder& order) {
    uint64_t lowest = order.clock;
    uint64_t highest = lowest;
    if (mode_.skips_steps) {
      lowest = std::min(order.clock + (Below(4) == 0 ? Below(3) : 0), limit_);
      highest = std::min(lowest + (Below(4) == 0 ? Below(2) : 0), limit_);
      lowest = std::max(lowest, order.clock);
      highest = std::max(lowest, highest);
    } else if (mode_.update_per_push) {
      lowest = highest = order.clock * 3 / 4;
    }
    here_.resize(options_.blocks);
    exact_.resize(options_.blocks);
    here_[order.block] = mode_.update_per_push ? order.clock : lowest;
    exact_[order.block] = order.exact;
    machine.OnWeights(order.block, lowest, highest);
  }
  void NoteSkipped(StepMachine& machine) {
    for (const SkippedSteps& skipped : machine.TakeSkipped()) {
      ASSERT_TRUE(mode_.skips_steps);
      ASSERT_EQ(pushed_, 0u) << "skips a step of which something was pushed";
      ASSERT_EQ(taken_[skipped.virtual_worker], skipped.first);
      taken_[skipped.virtual_worker] = skipped.end;
    }
  }
  StepGate Final(const StepMachine& machine) {
    StepGate gate{.paused = true, .final_version = machine.clock() + 3};
    limit_ = gate.final_version;
    for (uint32_t v = 0; v < options_.virtual_workers; ++v) {
      gate.final_clocks.push_back(machine.next_clock(v) + 1 + Below(3));
      gate.last_clock = std::max(gate.last_clock, gate.final_clocks.back() + Below(2));
    }
    if (!mode_.update_per_push) {
      gate.final_clocks.assign(options_.virtual_workers, gate.final_version);
      gate.last_clock = gate.final_version;
    }
    return gate;
  }

  std::mt19937_64 random_;
  const SyncMode mode_;
  StepMachineOptions options_;
  std::vector<uint64_t> taken_;  // by virtual worker: its next clock
  std::vector<uint64_t> here_;   // by block: clock that its weights are for
  std::vector<bool> exact_;
  uint32_t pushed_ = 0;  // blocks of the step in progress
  uint64_t limit_ = ~uint64_t{0};
};

TEST(StepMachine, TakesEveryClockOnceAndInOrderUnderAnyPolicyAndComesToItsEnd) {
  for (const SyncMode& mode : kSyncModes) {
    for (uint64_t seed = 1; seed <= 500; ++seed) {
      SCOPED_TRACE(std::string(mode.name) + ", seed " + std::to_string(seed));
      RandomJob(mode.policy, seed).Run();
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tug
