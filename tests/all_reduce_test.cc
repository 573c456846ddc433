// SPDX-License-Identifier: Apache-2.0
// Training by all-reduce (`exchange: ALL_REDUCE`) compared with push and pull. Real processes. With
// two workers the sums, and hence the bits, are equal. With more workers the collective determines
// the order of a sum: the result is close, and reproducible to the bit.

#include <signal.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

const Texts kPushPull = {"exchange=PUSH_PULL"};
const Texts kAllReduce = {"exchange=ALL_REDUCE"};

class AllReduceTest : public TugTest {
 protected:
  struct Result {
    CheckpointState state;
    Losses losses;
  };

  Result RunOf(const std::string& run, const Texts& settings, const Texts& more = {}) {
    Train(run, settings, more);
    return HasFailure() ? Result() : ReadResult(run);
  }
  Result ReadResult(const std::string& run) {
    const absl::StatusOr<CheckpointState> state = ReadState(Path(run));
    const absl::StatusOr<Losses> losses = ReadLosses(Path(run));
    EXPECT_TRUE(state.ok()) << state.status();
    EXPECT_TRUE(losses.ok()) << losses.status();
    return HasFailure() ? Result() : Result{*state, *losses};
  }

  static void ExpectSame(const Result& expected, const Result& actual) {
    ExpectSameState(expected.state, actual.state);
    ExpectSameLosses(expected.losses, actual.losses);
  }

  // |a - b| / |a| over all weights as one vector.
  static double Difference(const CheckpointState& a, const CheckpointState& b) {
    double difference = 0, norm = 0;
    for (const auto& [name, bits] : a.bits) {
      if (name.back() != 'w') continue;
      const std::vector<uint32_t>& others = b.bits.at(name);
      for (size_t i = 0; i < bits.size(); ++i) {
        const double x = std::bit_cast<float>(bits[i]), y = std::bit_cast<float>(others[i]);
        difference += (x - y) * (x - y);
        norm += x * x;
      }
    }
    return std::sqrt(difference / norm);
  }
  static double Relative(double a, double b) { return std::abs(a - b) / std::abs(a); }
};

Texts Workers(int workers, int virtual_workers) {
  return {absl::StrCat("cluster.workers=", workers), absl::StrCat("cluster.servers=", workers),
          absl::StrCat("cluster.virtual_workers=", virtual_workers)};
}

TEST_F(AllReduceTest, TwoWorkersHaveTheBitsOfPushAndPull) {
  const Texts steps = {"train.steps=200", "checkpoint.interval=200", "train.eval_interval=100"};
  const Result expected = RunOf("push-pull", kPushPull + steps);
  ASSERT_FALSE(HasFailure());
  EXPECT_LT(expected.losses.training.at(200), expected.losses.training.at(1) - 0.5);
  for (const std::string shared : {"true", "false"}) {
    SCOPED_TRACE(shared);
    const Result actual =
        RunOf("all-reduce-" + shared, kAllReduce + steps + Texts{"comm.shared_memory=" + shared});
    ASSERT_FALSE(HasFailure());
    ExpectSame(expected, actual);
  }
}

TEST_F(AllReduceTest, TwoWorkersHaveBitsOfPushPullForAnyClipAndExchange) {
  for (const Texts& settings :
       {Texts{"cluster.virtual_workers=4", "optimizer.clip=PER_BLOCK"},
        Texts{"cluster.virtual_workers=4", "optimizer.clip=OFF", "comm.pull_format=BF16"},
        Texts{"optimizer.clip=OFF", "model.tied_head=false", "comm.shared_memory=false",
              "comm.segment_elements=1024", "collective.algorithm=RECURSIVE_DOUBLING"}}) {
    const std::string name = absl::StrCat("of", settings.size(), settings.front().size());
    SCOPED_TRACE(name);
    const Result expected = RunOf("push-pull-" + name, kPushPull + settings);
    const Result actual = RunOf("all-reduce-" + name, kAllReduce + settings);
    ASSERT_FALSE(HasFailure());
    ExpectSame(expected, actual);
  }
}

// With the ring algorithm, whose summation order differs from a lane's sum tree.
TEST_F(AllReduceTest, FourWorkersAreCloseToPushAndPullAndHaveTheSameBitsEachTime) {
  const Texts four = Workers(4, 4) + Texts{"collective.algorithm=RING", "train.eval_interval=100"};
  const Texts every = four + Texts{"train.steps=6", "checkpoint.interval=1", "checkpoint.keep=10"};
  const Result few = RunOf("push-pull-6", kPushPull + every);
  const Result reduced_few = RunOf("all-reduce-6", kAllReduce + every);
  ASSERT_FALSE(HasFailure());
  EXPECT_LE(Relative(few.losses.training.at(1), reduced_few.losses.training.at(1)), 1e-6);
  const std::string step_1 = "/checkpoints/step-00000001";
  const absl::StatusOr<CheckpointState> first = ReadState(Path("push-pull-6") + step_1);
  const absl::StatusOr<CheckpointState> reduced_first = ReadState(Path("all-reduce-6") + step_1);
  ASSERT_TRUE(first.ok() && reduced_first.ok()) << first.status() << reduced_first.status();
  EXPECT_LE(Difference(*first, *reduced_first), 1e-6);
  EXPECT_NE(first->bits, reduced_first->bits) << "the order of sums had no effect";

  const Texts many = four + Texts{"train.steps=200", "checkpoint.interval=0"};
  const Result expected = RunOf("push-pull-200", kPushPull + many);
  const Result result = RunOf("all-reduce-200", kAllReduce + many);
  const Result again = RunOf("again", kAllReduce + many);
  ASSERT_FALSE(HasFailure());
  EXPECT_LE(Relative(expected.losses.training.at(200), result.losses.training.at(200)), 1e-3);
  EXPECT_LE(Relative(expected.losses.validation.at(200), result.losses.validation.at(200)), 1e-3);
  ExpectSame(result, again);
}

TEST_F(AllReduceTest, EveryAlgorithmAndFormatTrains) {
  const Texts three = Workers(3, 3) + Texts{"train.global_batch=3", "train.steps=30",
                                            "checkpoint.interval=0", "comm.shared_memory=false"};
  const Result expected = RunOf("push-pull", kPushPull + three);
  ASSERT_FALSE(HasFailure());
  for (const std::string setting :
       {"algorithm=RING", "algorithm=HALVING_DOUBLING", "algorithm=RECURSIVE_DOUBLING",
        "algorithm=BINARY_TREE", "format=BF16", "format=FP16"}) {
    SCOPED_TRACE(setting);
    const Result result =
        RunOf(setting, Texts{"exchange=ALL_REDUCE", "collective." + setting} + three);
    ASSERT_FALSE(HasFailure());
    const double bound = setting[0] == 'a' ? 1e-3 : 3e-2;
    EXPECT_LE(Relative(expected.losses.training.at(30), result.losses.training.at(30)), bound);
  }
}

TEST_F(AllReduceTest, ItsCheckpointsAreThoseOfPushAndPull) {
  const Result whole = RunOf("all-reduce", kAllReduce);
  const std::string at_25 = Path("all-reduce") + "/checkpoints/step-00000025";
  const Result by_push_pull = RunOf("push-pull", kPushPull, {"--resume", at_25});
  const Result resumed = RunOf("resumed", kAllReduce, {"--resume", at_25});
  ASSERT_FALSE(HasFailure());
  ExpectSameState(whole.state, by_push_pull.state);
  ExpectSameLosses(LossesAfter(whole.losses, 25), by_push_pull.losses);
  ExpectSameState(whole.state, resumed.state);
  EXPECT_EQ(Run({"eval", "--from", Path("all-reduce")}).exit_code(), 0);
}

TEST_F(AllReduceTest, AKilledProcessEndsTheJobWhichNamesItAndCanBeResumed) {
  for (const std::string kind : {"server", "worker"}) {
    SCOPED_TRACE(kind);
    Process& train = StartTraining(kind, Endless() + kAllReduce);
    ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(train, kind));
    const std::vector<pid_t> pids = Pids(kind);
    ASSERT_EQ(pids.size(), 2u);
    kill(pids.back(), SIGKILL);
    ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << "the job goes on";
    ExpectErrorLine(
        train, {kind, absl::StrCat("pid ", pids.back()), absl::StrCat("--resume ", Path(kind))});
    ExpectNobodyLeft();
    if (kind == "server") ExpectResumes(kind, kAllReduce);
  }
}

TEST_F(AllReduceTest, RefusesDrainOfAllReduceJob) {
  Process& train = StartTraining("run", Endless() + kAllReduce);
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  ExpectErrorLine(Run({"drain", "server-0", Path("run")}),
                  {"cannot leave", "ALL_REDUCE", "tug stop"});
  train.Signal(SIGINT);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  ExpectOrderlyEnd(train, "run");
}

}  // namespace
}  // namespace tug
