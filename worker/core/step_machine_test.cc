// SPDX-License-Identifier: Apache-2.0
#include "worker/core/step_machine.h"

#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "config/sync_mode.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

// The first virtual worker stays, a second one is taken over.
const std::optional<uint32_t> kTakenOver[] = {0, std::nullopt};

StepMachineOptions Options() {
  StepMachineOptions options;
  options.blocks = 2;
  options.virtual_workers = 2;
  options.micro_batches = 2;
  return options;
}

void GiveAllWeights(StepMachine& machine, uint32_t blocks, uint64_t version) {
  for (uint32_t b = 0; b < blocks; ++b) machine.OnWeights(b, version);
}

// Logs one letter per computation (F, B, E), with virtual worker, micro-batch and block, and its
// effects.
std::string RunUntilBlocked(StepMachine& machine) {
  std::ostringstream log;
  while (machine.next() == StepMachine::Next::kCompute) {
    const Compute c = machine.compute();
    const StepEffects effects = machine.OnComputeDone();
    log << "FBE"[static_cast<int>(c.phase)] << c.virtual_worker << c.micro_batch << c.block;
    if (effects.push) log << "+push" << *effects.push;
    if (effects.pull) log << "+pull" << effects.pull->block;
    if (effects.evaluation_done) log << "+evaluated";
    if (effects.step_done) log << "+step";
    log << ' ';
  }
  return log.str();
}

TEST(StepMachine, RunsMicroBatchesAndPushesEachBlockWhenComplete) {
  StepMachine machine(Options());
  EXPECT_EQ(machine.next(), StepMachine::Next::kWaitGate);
  machine.SetGate(false, 0);
  GiveAllWeights(machine, 2, 0);
  EXPECT_EQ(RunUntilBlocked(machine),
            "F000 F001 B001 B000 F010 F011 B011+push1 B010+push0 "
            "F100 F101 B101 B100 F110 F111 B111+push1+pull1 B110+push0+pull0+step ");
  EXPECT_EQ(machine.next(), StepMachine::Next::kWaitWeights);
  EXPECT_EQ(machine.clock(), 1u);
}

TEST(StepMachine, SaysWhatItIsAt) {
  using Next = StepMachine::Next;
  StepMachine machine(Options());
  EXPECT_EQ(machine.activity(), (StepMachine::Activity{Next::kWaitGate, 0, 0}));
  machine.SetGate(false, 0);
  EXPECT_EQ(machine.activity(), (StepMachine::Activity{Next::kWaitWeights, 0, 0}));
  machine.OnWeights(0, 0);
  EXPECT_EQ(machine.activity(), (StepMachine::Activity{Next::kCompute, 0, 0}));
  machine.OnComputeDone();
  EXPECT_EQ(machine.activity(), (StepMachine::Activity{Next::kWaitWeights, 1, 0}));
  machine.OnWeights(1, 0);
  RunUntilBlocked(machine);
  EXPECT_EQ(machine.activity(), (StepMachine::Activity{Next::kWaitWeights, 0, 1}));
}

TEST(StepMachine, StartsTheNextForwardPassWhenBlockZeroHasArrived) {
  StepMachineOptions options = Options();
  options.virtual_workers = 1;
  options.micro_batches = 1;
  StepMachine machine(options);
  machine.SetGate(false, 0);
  machine.OnWeights(0, 0);
  EXPECT_EQ(RunUntilBlocked(machine), "F000 ");
  machine.OnWeights(1, 0);
  EXPECT_EQ(RunUntilBlocked(machine), "F001 B001+push1+pull1 B000+push0+pull0+step ");
  machine.OnWeights(0, 1);
  EXPECT_EQ(RunUntilBlocked(machine), "F000 ");
  EXPECT_EQ(machine.next(), StepMachine::Next::kWaitWeights);
  EXPECT_EQ(machine.compute().block, 1u);
}

TEST(StepMachine, FinishesAtTheFinalVersionAfterTheLastEvaluation) {
  StepMachineOptions options = Options();
  options.virtual_workers = 1;
  options.micro_batches = 1;
  options.eval_interval = 1;
  options.eval_micro_batches = [](uint32_t, bool last) { return last ? 2u : 1u; };
  StepMachine machine(options);
  machine.SetGate(false, 2);
  GiveAllWeights(machine, 2, 0);
  EXPECT_EQ(RunUntilBlocked(machine), "F000 F001 B001+push1+pull1 B000+push0+pull0+step ");
  GiveAllWeights(machine, 2, 1);
  EXPECT_EQ(RunUntilBlocked(machine),
            "E000 E001+evaluated F000 F001 B001+push1+pull1 B000+push0+pull0+step ");
  GiveAllWeights(machine, 2, 2);
  EXPECT_EQ(RunUntilBlocked(machine), "E000 E001 E010 E011+evaluated ");
  EXPECT_EQ(machine.next(), StepMachine::Next::kFinished);
}

TEST(StepMachine, FinishesAtOnceWhenResumedAtTheEnd) {
  StepMachineOptions options = Options();
  options.start_version = 5;
  StepMachine machine(options);
  machine.SetGate(false, 5);
  EXPECT_EQ(machine.next(), StepMachine::Next::kFinished);
}

TEST(StepMachine, HoldsTheNextStepWhilePausedButEndsTheOneInProgress) {
  StepMachineOptions options = Options();
  options.virtual_workers = 1;
  options.micro_batches = 1;
  StepMachine machine(options);
  machine.SetGate(false, 0);
  GiveAllWeights(machine, 2, 0);
  machine.OnComputeDone();
  machine.SetGate(true, 0);
  EXPECT_TRUE(machine.in_step());
  EXPECT_EQ(RunUntilBlocked(machine), "F001 B001+push1+pull1 B000+push0+pull0+step ");
  GiveAllWeights(machine, 2, 1);
  EXPECT_EQ(machine.next(), StepMachine::Next::kWaitGate);
  EXPECT_FALSE(machine.in_step());
  machine.SetGate(true, 2);
  EXPECT_EQ(RunUntilBlocked(machine), "F000 F001 B001+push1+pull1 B000+push0+pull0+step ");
  GiveAllWeights(machine, 2, 2);
  EXPECT_EQ(machine.next(), StepMachine::Next::kFinished);
}

// ---- virtual workers at clocks of their own ----

// Answers every pull at once with weights of the requested clock.
std::string RunAnsweringPulls(StepMachine& machine, uint32_t blocks) {
  std::ostringstream log;
  for (uint32_t b = 0; b < blocks; ++b) machine.OnWeights(b, machine.clock());
  while (true) {
    if (machine.next() == StepMachine::Next::kPull) {
      const PullOrder order = machine.pull();
      machine.OnPulling();
      machine.OnWeights(order.block, order.clock);
      log << "pull" << order.block << '@' << order.clock << (order.exact ? "! " : " ");
      continue;
    }
    if (machine.next() != StepMachine::Next::kCompute) return log.str();
    const Compute c = machine.compute();
    const StepEffects effects = machine.OnComputeDone();
    if (effects.evaluation_done) log << 'E' << c.virtual_worker << '@' << c.clock << ' ';
    if (effects.virtual_worker_done) log << 'S' << c.virtual_worker << '@' << c.clock << ' ';
    if (!effects.pull) continue;
    log << "->" << effects.pull->clock << (effects.pull->exact ? "! " : " ");
    machine.OnWeights(effects.pull->block, effects.pull->clock);
  }
}

StepMachineOptions OneBlock(SyncConfig::Policy policy, uint32_t virtual_workers) {
  StepMachineOptions options;
  options.virtual_workers = virtual_workers;
  options.mode = SyncModeOf(policy);
  return options;
}

TEST(StepMachine, VirtualWorkersBehindCatchUpFirst) {
  StepMachineOptions options = OneBlock(SyncConfig::BSP, 3);
  options.start_clocks = {5, 3, 4};
  StepMachine machine(options);
  EXPECT_EQ(machine.clock(), 3u);
  machine.SetGate(false, 6);
  EXPECT_EQ(RunAnsweringPulls(machine, 1), "S1@3 ->4 S1@4 S2@4 ->5 S0@5 S1@5 S2@5 ->6 ");
  EXPECT_EQ(machine.next(), StepMachine::Next::kFinished);
}

TEST(StepMachine, EveryVirtualWorkerEndsAtItsOwnClockWherePushesAreUpdates) {
  StepMachineOptions options = OneBlock(SyncConfig::ASP, 3);
  options.eval_micro_batches = [](uint32_t, bool last) { return last ? 1u : 0u; };
  StepMachine machine(options);
  machine.SetGate({.paused = true, .final_version = 2, .final_clocks = {1, 3, 2}, .last_clock = 7});
  EXPECT_EQ(RunAnsweringPulls(machine, 1),
            "S0@0 S1@0 S2@0 ->1 S1@1 S2@1 ->2 S1@2 ->7! E0@2 E1@2 E2@2 ");
  EXPECT_EQ(machine.next(), StepMachine::Next::kFinished);
}

// After the last step of one virtual worker, pulls at the clock of the other, not at the next
// clock.
TEST(StepMachine, PullsForTheLowestClockOfThoseThatGoOn) {
  StepMachineOptions options = OneBlock(SyncConfig::SSP, 2);
  options.start_clocks = {2, 7};
  StepMachine machine(options);
  machine.SetGate({.paused = false, .final_version = 9, .final_clocks = {3, 9}, .last_clock = 9});
  EXPECT_EQ(RunAnsweringPulls(machine, 1), "S0@2 ->7 S1@7 ->8 S1@8 ->9! ");
}

// Some virtual workers may have ended, or be ahead: lanes could not interpret a pull for them at
// this clock.
TEST(StepMachine, PullsForThoseThatTakeTheStep) {
  StepMachineOptions options = OneBlock(SyncConfig::SSP, 5);
  options.start_clocks = {2, 7, 4, 4, 3};
  StepMachine machine(options);
  EXPECT_EQ(machine.CurrentPull(0), (PullOrder{0, 2, false, 0, 1}));
  machine.SetGate(
      {.paused = true, .final_version = 4, .final_clocks = {2, 7, 5, 6, 5}, .last_clock = 7});
  EXPECT_EQ(machine.CurrentPull(0), (PullOrder{0, 3, false, 4, 1}));
  machine.OnWeights(0, 0);
  std::vector<PullOrder> orders;
  while (machine.next() == StepMachine::Next::kPull) {
    orders.push_back(machine.pull());
    machine.OnPulling();
    machine.OnWeights(0, 0);
  }
  while (machine.next() == StepMachine::Next::kCompute) {
    const StepEffects effects = machine.OnComputeDone();
    if (!effects.pull.has_value()) continue;
    orders.push_back(*effects.pull);
    machine.OnWeights(0, 0);
  }
  EXPECT_EQ(orders,
            (std::vector<PullOrder>{
                {0, 3, false, 4, 1}, {0, 4, false, 2, 3}, {0, 5, false, 3, 1}, {0, 7, true}}));
}

// The step was not known to be the last when the weights after it were requested.
TEST(StepMachine, AnUnforeseenEndPullsTheExactWeightsAnew) {
  StepMachineOptions options = OneBlock(SyncConfig::SSP, 1);
  options.eval_micro_batches = [](uint32_t, bool) { return 1u; };
  StepMachine machine(options);
  machine.SetGate({.paused = true});
  machine.SetGate({.paused = false});
  EXPECT_TRUE(machine.in_step());
  machine.SetGate({.paused = true});
  EXPECT_EQ(RunAnsweringPulls(machine, 1), "S0@0 ->1 ");
  EXPECT_EQ(machine.next(), StepMachine::Next::kWaitGate);
  EXPECT_EQ(machine.begun(), 0u);
  machine.SetGate({.paused = true, .final_version = 1, .final_clocks = {1}, .last_clock = 1});
  EXPECT_EQ(RunAnsweringPulls(machine, 1), "pull0@1! E0@1 ");
}

// Its own clock does not tell: a slow virtual worker is behind the job's step, a fast one ahead.
TEST(StepMachine, EvaluatesWhenTheWeightsHaveComeToTheVersionWherePushesAreUpdates) {
  StepMachineOptions options = OneBlock(SyncConfig::ASP, 1);
  options.eval_interval = 10;
  options.eval_micro_batches = [](uint32_t, bool) { return 1u; };
  StepMachine machine(options);
  machine.SetGate({.paused = false});
  std::vector<uint64_t> evaluated;
  uint64_t version = 9;
  for (int step = 0; step < 4; ++step, version += 13) {  // 9, 22, 35, 48
    machine.OnWeights(0, version, version);
    while (machine.next() == StepMachine::Next::kCompute) {
      const Compute c = machine.compute();
      EXPECT_TRUE(machine.in_step());
      if (machine.OnComputeDone().evaluation_done) evaluated.push_back(c.clock);
    }
  }
  EXPECT_EQ(evaluated, (std::vector<uint64_t>{10, 20, 30, 40}));
  EXPECT_EQ(machine.clock(), 4u);
}

TEST(StepMachine, HoldsAtTheLastClockUntilItIsKnownWhereVirtualWorkersEnd) {
  StepMachineOptions options = OneBlock(SyncConfig::ASP, 1);
  options.steps = 2;
  StepMachine machine(options);
  machine.SetGate({.paused = false});
  EXPECT_EQ(RunAnsweringPulls(machine, 1), "S0@0 ->1 S0@1 ->2 ");
  EXPECT_EQ(machine.next(), StepMachine::Next::kWaitGate);
  machine.SetGate({.paused = true, .final_version = 2, .final_clocks = {3}, .last_clock = 3});
  EXPECT_EQ(RunAnsweringPulls(machine, 1), "S0@2 ->3! ");
}

TEST(StepMachine, TakesOverAVirtualWorkerAtTheClockWhereItWasLost) {
  StepMachineOptions options = OneBlock(SyncConfig::BSP, 1);
  options.eval_interval = 2;
  options.eval_micro_batches = [](uint32_t, bool) { return 1u; };
  StepMachine machine(options);
  machine.SetGate(false, 0);
  for (uint64_t version = 0; version < 2; ++version) {
    machine.OnWeights(0, version);
    RunUntilBlocked(machine);
  }
  machine.SetGate(true, 0);
  machine.OnWeights(0, 2);
  EXPECT_EQ(RunUntilBlocked(machine), "E000+evaluated ");
  ASSERT_EQ(machine.next(), StepMachine::Next::kWaitGate);
  // The lost worker had pushed clock 0, and nothing of clock 1.
  machine.Carry({2, 1}, kTakenOver);
  EXPECT_EQ(machine.clock(), 1u);
  machine.SetGate(false, 3);
  EXPECT_EQ(machine.next(), StepMachine::Next::kPull);
  EXPECT_EQ(machine.pull(), (PullOrder{0, 1, false, 1, 1}));
  machine.OnPulling();
  EXPECT_EQ(RunAnsweringPulls(machine, 1), "S1@1 ->2 E1@2 S0@2 S1@2 ->3 E0@3 E1@3 ");
}

// The step's weights may wait for the push of a virtual worker that this process has just taken
// over.
TEST(StepMachine, AStepThatHasPushedNothingIsPutBackForOneThatWasTakenOver) {
  StepMachineOptions options;
  options.blocks = 2;
  StepMachine machine(options);
  machine.SetGate(false, 0);
  machine.OnWeights(0, 0);
  machine.OnWeights(1, 0);
  for (int computed = 0; computed < 4; ++computed) {
    EXPECT_EQ(machine.CanPutBack(), computed < 2) << computed;
    ASSERT_EQ(machine.next(), StepMachine::Next::kCompute);
    machine.OnComputeDone();
  }
  machine.OnWeights(0, 1);
  ASSERT_EQ(machine.next(), StepMachine::Next::kCompute);
  machine.OnComputeDone();
  ASSERT_EQ(machine.next(), StepMachine::Next::kWaitWeights);
  ASSERT_TRUE(machine.in_step() && machine.CanPutBack());

  machine.Carry({1, 0}, kTakenOver);
  machine.SetGate(false, 0);
  EXPECT_EQ(machine.clock(), 0u);
  EXPECT_EQ(machine.begun(), 0u);
  // Pulls in flight are repeated too.
  for (const uint32_t block : {0, 1}) {
    ASSERT_EQ(machine.next(), StepMachine::Next::kPull);
    EXPECT_EQ(machine.pull(), (PullOrder{block, 0, false, 1, 1}));
    machine.OnPulling();
    machine.OnWeights(block, 0);
  }
  ASSERT_EQ(machine.next(), StepMachine::Next::kCompute);
  EXPECT_EQ(machine.compute().virtual_worker, 1u);
}

// ---- local steps ----

TEST(StepMachine, PushesAfterTheLastLocalStep) {
  StepMachineOptions options = Options();
  options.virtual_workers = 1;
  options.micro_batches = 1;
  options.local_steps = 3;
  StepMachine machine(options);
  machine.SetGate(false, 0);
  GiveAllWeights(machine, 2, 0);
  std::vector<uint32_t> local_steps;
  std::string log;
  while (machine.next() == StepMachine::Next::kCompute) {
    const Compute c = machine.compute();
    const StepEffects effects = machine.OnComputeDone();
    if (c.phase == ComputePhase::kForward) local_steps.push_back(c.local_step);
    if (effects.local_step_done) log += "local ";
    if (effects.push) log += "push ";
    if (effects.step_done) log += "step ";
  }
  EXPECT_EQ(local_steps, (std::vector<uint32_t>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(log, "local local push local push step ");
}

// ---- steps that are skipped ----

TEST(StepMachine, AStepBecomesTheNewestThatWeightsComeOf) {
  StepMachineOptions options = Options();
  options.blocks = 3;
  options.micro_batches = 1;
  options.mode = SyncModeOf(SyncConfig::BACKUP);
  StepMachine machine(options);
  machine.SetGate(false, 0);
  machine.OnWeights(0, 0);
  EXPECT_EQ(RunUntilBlocked(machine), "F000 ");
  machine.OnWeights(1, 1, 3);  // a part of it is behind
  EXPECT_EQ(machine.clock(), 3u);
  EXPECT_EQ(machine.TakeSkipped(), (std::vector<SkippedSteps>{{0, 0, 3}, {1, 0, 3}}));
  EXPECT_TRUE(machine.TakeSkipped().empty());
  std::vector<PullOrder> orders;
  while (machine.next() == StepMachine::Next::kPull) {
    orders.push_back(machine.pull());
    machine.OnPulling();
  }
  EXPECT_EQ(orders, (std::vector<PullOrder>{{0, 3, false, 0, 2}, {1, 3, false, 0, 2}}));
  machine.OnWeights(0, 3);
  EXPECT_EQ(RunUntilBlocked(machine), "F000 ");
  machine.OnWeights(1, 3);
  machine.OnWeights(2, 3);
  EXPECT_EQ(RunUntilBlocked(machine),
            "F001 F002 B002+push2 B001+push1 B000+push0 F100 F101 F102 "
            "B102+push2+pull2 B101+push1+pull1 B100+push0+pull0+step ");
}

TEST(StepMachine, SkippingToTheEndTakesNoFurtherStep) {
  StepMachineOptions options = OneBlock(SyncConfig::BACKUP, 1);
  options.eval_micro_batches = [](uint32_t, bool last) { return last ? 1u : 0u; };
  StepMachine machine(options);
  machine.SetGate(true, 5);
  machine.OnWeights(0, 5);
  EXPECT_EQ(machine.TakeSkipped(), (std::vector<SkippedSteps>{{0, 0, 5}}));
  EXPECT_EQ(RunUntilBlocked(machine), "E000+evaluated ");
  EXPECT_EQ(machine.next(), StepMachine::Next::kFinished);
}

// The order to pause was answered with the step in progress: no other step may begin.
TEST(StepMachine, SkippingWhilePausedWaitsAtTheGate) {
  StepMachine machine(OneBlock(SyncConfig::BACKUP, 1));
  machine.SetGate(false, 0);
  machine.SetGate(true, 0);
  EXPECT_TRUE(machine.in_step());
  machine.OnWeights(0, 2);
  EXPECT_EQ(machine.next(), StepMachine::Next::kWaitGate);
  EXPECT_EQ(machine.begun(), 0u);
  EXPECT_FALSE(machine.in_step());
  machine.SetGate(true, 3);
  EXPECT_EQ(RunUntilBlocked(machine), "F000 B000+push0+pull0+step ");
}

TEST(StepMachine, AnEvaluationThatWasSkippedIsMadeOnTheNewerWeights) {
  StepMachineOptions options = OneBlock(SyncConfig::BACKUP, 1);
  options.blocks = 2;
  options.eval_interval = 2;
  options.eval_micro_batches = [](uint32_t, bool) { return 1u; };
  StepMachine machine(options);
  machine.SetGate(false, 0);
  machine.OnWeights(0, 2);
  EXPECT_EQ(machine.clock(), 2u);
  EXPECT_EQ(machine.compute(), (Compute{ComputePhase::kEvaluate, 2, 0, 0, 0}));
  machine.OnComputeDone();
  machine.OnWeights(1, 3);  // during the evaluation
  EXPECT_EQ(machine.clock(), 3u);
  EXPECT_EQ(machine.compute(), (Compute{ComputePhase::kEvaluate, 2, 0, 0, 0}));
}

}  // namespace
}  // namespace tug
