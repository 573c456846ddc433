// SPDX-License-Identifier: Apache-2.0
// Tests comm.scheduler AUTO: schedules in replies, and measurements of steps under them.

#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "coordinator/coordinator.h"
#include "coordinator/coordinator_test_support.h"

namespace tug {
namespace {

constexpr uint32_t kServers = 2;
constexpr uint32_t kWorker = 3;  // node id, after those of the servers

CoordinatorOptions TunedOptions() {
  CoordinatorOptions options = JobUnderTest::Options(kServers, 1, 1000, 0, 1);
  CommConfig& comm = *options.config.mutable_comm();
  comm.set_scheduler(CommConfig::AUTO);
  comm.set_segment_elements(1024);
  comm.set_partition_bytes(4096);
  comm.set_credit_bytes(16384);
  comm.set_pull_credit_bytes(16384);
  comm.mutable_tuner()->set_trials(4);
  comm.mutable_tuner()->set_steps_per_trial(1);
  comm.mutable_tuner()->set_drift(0.2);
  options.layout = BlockLayout();
  options.layout.blocks.add_blocks()->add_tensors()->add_shape(100'000);
  for (int segment = 0; segment < 98; ++segment) options.layout.segment_bytes.push_back(4096);
  return options;
}

class CoordinatorTuningTest : public testing::Test {
 protected:
  CoordinatorTuningTest() { job_.Run(kServers, 1); }

  HeartbeatReply Step(uint32_t schedule) {
    HeartbeatRequest beat = WithStep(job_.ReadyBeat(kWorker), 0, clock_++);
    beat.set_schedule(schedule);
    beat.mutable_steps(0)->set_schedule(schedule);
    beat.mutable_steps(0)->set_step_seconds(0.1);
    return job_.Send(beat);
  }
  HeartbeatReply ServerBeat(uint32_t server, uint32_t schedule) {
    HeartbeatRequest beat = job_.ReadyBeat(server);
    beat.set_schedule(schedule);
    return job_.Send(beat);
  }

  JobUnderTest job_{TunedOptions()};
  uint64_t clock_ = 0;
};

TEST_F(CoordinatorTuningTest, TellsWorkersOfAScheduleOnceEveryServerHasIt) {
  for (int step = 0; step < 3; ++step) EXPECT_FALSE(Step(0).has_schedule());
  ASSERT_EQ(job_.Take<TuningAction>().size(), 1u) << "the trial of the job's own";
  const HeartbeatReply first = ServerBeat(1, 0);
  ASSERT_TRUE(first.has_schedule());
  EXPECT_EQ(first.schedule().number(), 1u);
  EXPECT_GE(first.schedule().credit_bytes(), first.schedule().partition_bytes());
  EXPECT_FALSE(Step(0).has_schedule());
  ServerBeat(1, 1);
  EXPECT_FALSE(Step(0).has_schedule()) << "server 2 has not";
  ServerBeat(2, 1);
  const HeartbeatReply worker = Step(0);
  ASSERT_TRUE(worker.has_schedule());
  EXPECT_EQ(worker.schedule().SerializeAsString(), first.schedule().SerializeAsString());
}

TEST_F(CoordinatorTuningTest, WorkersKeepTheNewestThatServersHaveWhileTheNextIsOnItsWay) {
  for (int step = 0; step < 3; ++step) Step(0);
  for (const uint32_t server : {1u, 2u}) ServerBeat(server, 1);
  Step(1);
  Step(1);  // measured
  EXPECT_EQ(ServerBeat(1, 1).schedule().number(), 2u);
  EXPECT_EQ(Step(1).schedule().number(), 1u);
}

TEST_F(CoordinatorTuningTest, SettlesAfterItsTrials) {
  uint32_t schedule = 0;
  std::vector<TuningAction> actions;
  for (int step = 0; step < 40; ++step) {
    const HeartbeatReply reply = Step(schedule);
    if (reply.has_schedule()) schedule = reply.schedule().number();
    for (const uint32_t server : {1u, 2u}) {
      ServerBeat(server, ServerBeat(server, 0).schedule().number());
    }
    for (TuningAction& action : job_.Take<TuningAction>()) actions.push_back(std::move(action));
  }
  ASSERT_EQ(actions.size(), 5u);
  for (int trial = 0; trial < 4; ++trial) {
    EXPECT_EQ(std::get<TrialMetrics>(actions[trial].event).trial.number, trial + 1u);
  }
  EXPECT_TRUE(std::holds_alternative<SettledMetrics>(actions[4].event));
}

}  // namespace
}  // namespace tug
