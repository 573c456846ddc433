#include "worker/step_machine.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace tug {
namespace {

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

// One letter a computation (F, B, E), with virtual worker, micro-batch and block, then its effects.
std::string RunUntilBlocked(StepMachine& machine) {
  std::ostringstream log;
  while (machine.next() == StepMachine::Next::kCompute) {
    const Compute c = machine.compute();
    const StepEffects effects = machine.OnComputeDone();
    log << "FBE"[static_cast<int>(c.phase)] << c.virtual_worker << c.micro_batch << c.block;
    if (effects.push) log << "+push" << *effects.push;
    if (effects.pull) log << "+pull" << *effects.pull;
    if (effects.evaluation_done) log << "+evaluated";
    if (effects.step_done) log << "+step";
    log << ' ';
  }
  return log.str();
}

TEST(StepMachine, RunsMicroBatchesForwardAndBackwardAndPushesEachBlockAsItCompletes) {
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

TEST(StepMachine, FinishesAtOnceWhenResumedAtTheEnd) {
  StepMachineOptions options = Options();
  options.start_version = 5;
  StepMachine machine(options);
  machine.SetGate(false, 5);
  EXPECT_EQ(machine.next(), StepMachine::Next::kFinished);
}

}  // namespace
}  // namespace tug
