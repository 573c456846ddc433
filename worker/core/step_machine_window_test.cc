// SPDX-License-Identifier: Apache-2.0
// StepMachine of a worker that keeps the weights of a few blocks only.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "worker/core/step_machine.h"

namespace tug {
namespace {

StepMachineOptions Options(uint32_t blocks, uint32_t ahead,
                           std::optional<uint32_t> tied = std::nullopt) {
  StepMachineOptions options;
  options.blocks = blocks;
  options.window.emplace(blocks, ahead, tied);
  return options;
}

// Runs until the machine waits for something other than weights, which arrive at once. Logs a
// letter per computation (F, B, E) with its block, pulls with their clock if it differs, and drops.
std::string RunUntilGate(StepMachine& machine, uint64_t end_clock) {
  std::ostringstream log;
  std::vector<PullOrder> open;
  while (machine.clock() < end_clock) {
    switch (machine.next()) {
      case StepMachine::Next::kPull: {
        const PullOrder order = machine.pull();
        log << '+' << order.block;
        if (order.clock != machine.clock()) log << '@' << order.clock;
        log << ' ';
        open.push_back(order);
        machine.OnPulling();
        break;
      }
      case StepMachine::Next::kDrop:
        log << '-' << machine.drop().block << (machine.drop().open ? "! " : " ");
        machine.OnDropped();
        break;
      case StepMachine::Next::kWaitWeights: {
        const auto found = std::find_if(open.begin(), open.end(), [&](const PullOrder& order) {
          return order.block == machine.awaited();
        });
        if (found == open.end()) return log.str() + "nothing comes";
        const PullOrder order = *found;
        open.erase(found);
        machine.OnWeights(order.block, order.clock);
        break;
      }
      case StepMachine::Next::kCompute: {
        const Compute compute = machine.compute();
        log << "FBE"[static_cast<int>(compute.phase)] << compute.block << ' ';
        const StepEffects effects = machine.OnComputeDone();
        if (effects.drop) log << "-" << *effects.drop << ' ';
        if (effects.push) log << "push" << *effects.push << ' ';
        EXPECT_FALSE(effects.pull.has_value());
        break;
      }
      case StepMachine::Next::kWaitGate:
      case StepMachine::Next::kFinished:
        return log.str();
    }
  }
  return log.str();
}

TEST(StepMachineWindow, PullsABlockBeforeEachOfItsPassesAndKeepsNoOther) {
  StepMachine machine(Options(3, 0));
  machine.SetGate(false, 0);
  EXPECT_EQ(RunUntilGate(machine, 1),
            "+0 F0 -0 +1 F1 -1 +2 F2 B2 -2 push2 +1 B1 -1 push1 +0 B0 -0 push0 ");
}

TEST(StepMachineWindow, AsksAheadInTheOrderOfUseAndIntoTheNextStep) {
  StepMachine machine(Options(4, 1));
  machine.SetGate(false, 0);
  EXPECT_EQ(RunUntilGate(machine, 1),
            "+0 +1 F0 -0 +2 F1 -1 +3 F2 F3 B3 -3 push3 +1 B2 -2 push2 +0 B1 -1 push1 +1@1 "
            "B0 -0 push0 ");
  EXPECT_EQ(machine.next(), StepMachine::Next::kPull) << "block 0 of the next step";
  EXPECT_EQ(machine.pull().block, 0u);
  EXPECT_EQ(machine.pull().clock, 1u);
}

TEST(StepMachineWindow, HasTheTiedBlockForTheLast) {
  StepMachine machine(Options(3, 0, 0));
  machine.SetGate(false, 0);
  EXPECT_EQ(RunUntilGate(machine, 1),
            "+0 F0 -0 +1 F1 -1 +2 +0 F2 B2 -2 push2 -0 +1 B1 -1 push1 +0 B0 -0 push0 ");
}

TEST(StepMachineWindow, KeepsWeightsFromOneMicroBatchToTheNext) {
  StepMachineOptions options = Options(3, 1);
  options.micro_batches = 2;
  StepMachine machine(options);
  machine.SetGate(false, 0);
  EXPECT_EQ(RunUntilGate(machine, 1),
            "+0 +1 F0 -0 +2 F1 F2 B2 -2 +0 B1 B0 F0 -0 +2 F1 F2 B2 -2 push2 +0 B1 -1 push1 +1@1 "
            "B0 -0 push0 ");
}

TEST(StepMachineWindow, GivesUpWhatWasAskedForWhenOthersAreCarried) {
  StepMachine machine(Options(3, 1));
  machine.SetGate(false, 0);
  while (machine.next() == StepMachine::Next::kPull) machine.OnPulling();
  machine.OnWeights(0, 0);
  ASSERT_EQ(machine.next(), StepMachine::Next::kCompute);
  machine.Carry({4, 3}, std::vector<std::optional<uint32_t>>{0, std::nullopt});
  std::vector<DropOrder> drops;
  while (machine.next() == StepMachine::Next::kDrop) {
    drops.push_back(machine.drop());
    machine.OnDropped();
  }
  EXPECT_EQ(drops, (std::vector<DropOrder>{{1, true}, {0, false}}));
  ASSERT_EQ(machine.next(), StepMachine::Next::kPull);
  EXPECT_EQ(machine.pull().block, 0u);
  EXPECT_EQ(machine.pull().clock, 3u);
}

TEST(StepMachineWindow, DropsEverythingAtItsEnd) {
  StepMachine machine(Options(2, 5));
  machine.SetGate(false, 1);
  const std::string log = RunUntilGate(machine, 2);
  EXPECT_EQ(log, "+0 +1 F0 F1 B1 -1 push1 +1@1 B0 -0 push0 -1! ") << "what was asked for, too";
  EXPECT_EQ(machine.next(), StepMachine::Next::kFinished);
}

// A worker whose lanes are random.
class RandomWorker {
 public:
  explicit RandomWorker(uint64_t seed) : random_(seed) {
    options_.blocks = 1 + Below(6);
    ahead_ = Below(8);
    std::optional<uint32_t> tied;
    if (Below(2) == 0) tied = Below(options_.blocks);
    options_.window.emplace(options_.blocks, ahead_, tied);
    tied_ = tied;
    options_.virtual_workers = 1 + Below(3);
    options_.micro_batches = 1 + Below(2);
    options_.eval_interval = Below(3);
    options_.eval_micro_batches = [](uint32_t v, bool last) { return last ? v % 3 : v % 2; };
    options_.start_version = Below(3);
    for (uint32_t v = 0; v < options_.virtual_workers; ++v) {
      options_.start_clocks.push_back(options_.start_version + Below(3));
    }
    blocks_.resize(options_.blocks);
  }

  void Run() {
    StepMachine machine(options_);
    const uint64_t end = options_.start_version + 4;
    machine.SetGate({.paused = false});
    for (int turn = 0; machine.next() != StepMachine::Next::kFinished; ++turn) {
      ASSERT_LT(turn, 100000) << "comes to no end";
      if (turn > 100 && (Below(20) == 0 || machine.next() == StepMachine::Next::kWaitGate)) {
        machine.SetGate(true, end);
      }
      if (machine.next() == StepMachine::Next::kWaitGate) machine.SetGate({.paused = false});
      if (Below(60) == 0 && carries_ < 3 && machine.CanPutBack()) Carry(machine);
      Turn(machine);
      if (testing::Test::HasFatalFailure()) return;
    }
    for (const Block& block : blocks_) EXPECT_FALSE(block.held);
    for (uint32_t v = 0; v < options_.virtual_workers; ++v) {
      EXPECT_GE(machine.next_clock(v), end);
    }
  }

 private:
  struct Block {
    bool held = false;
    bool open = false;
    uint64_t clock = 0;
  };

  uint32_t Below(uint64_t n) { return static_cast<uint32_t>(random_() % n); }

  void Turn(StepMachine& machine) {
    switch (machine.next()) {
      case StepMachine::Next::kPull: {
        Block& block = blocks_[machine.pull().block];
        ASSERT_FALSE(block.held);
        block = {true, true, machine.pull().clock};
        machine.OnPulling();
        ExpectFew();
        break;
      }
      case StepMachine::Next::kDrop: {
        Block& block = blocks_[machine.drop().block];
        ASSERT_TRUE(block.held);
        ASSERT_EQ(block.open, machine.drop().open);
        block.held = false;
        machine.OnDropped();
        break;
      }
      case StepMachine::Next::kWaitWeights: {
        Block& block = blocks_[machine.awaited()];
        ASSERT_TRUE(block.held && block.open) << "waits for what it has not asked for";
        block.open = false;
        machine.OnWeights(machine.awaited(), block.clock);
        break;
      }
      case StepMachine::Next::kCompute: {
        const Compute compute = machine.compute();
        if (compute.phase != ComputePhase::kEvaluate) {
          ASSERT_EQ(compute.clock, machine.clock());
        }
        ExpectHere(compute.block, machine.clock());
        if (tied_.has_value() && compute.block + 1 == options_.blocks) {
          ExpectHere(*tied_, machine.clock());
        }
        const StepEffects effects = machine.OnComputeDone();
        ASSERT_FALSE(effects.pull.has_value());
        if (effects.drop) blocks_[*effects.drop].held = false;
        break;
      }
      case StepMachine::Next::kWaitGate:
      case StepMachine::Next::kFinished:
        break;
    }
  }
  void ExpectHere(uint32_t block, uint64_t clock) {
    ASSERT_TRUE(blocks_[block].held && !blocks_[block].open);
    ASSERT_EQ(blocks_[block].clock, clock);
  }
  void ExpectFew() {
    const auto held = std::count_if(blocks_.begin(), blocks_.end(),
                                    [](const Block& block) { return block.held; });
    ASSERT_LE(held, ahead_ + (tied_.has_value() ? 2 : 1));
  }
  void Carry(StepMachine& machine) {
    ++carries_;
    std::vector<uint64_t> clocks;
    std::vector<std::optional<uint32_t>> before;
    for (uint32_t v = 0; v < options_.virtual_workers; ++v) {
      clocks.push_back(machine.next_clock(v));
      before.emplace_back(v);
    }
    clocks.back() = options_.start_version + Below(3);
    before.back() = std::nullopt;
    machine.Carry(std::move(clocks), before);
  }

  std::mt19937_64 random_;
  StepMachineOptions options_;
  uint32_t ahead_ = 0;
  std::optional<uint32_t> tied_;
  std::vector<Block> blocks_;
  int carries_ = 0;
};

TEST(StepMachineWindow, ComputesWithWeightsOfItsClockInRandomRuns) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorker(seed).Run();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tug
