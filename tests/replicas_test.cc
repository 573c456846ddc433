// SPDX-License-Identifier: Apache-2.0
// With two replicas of every segment, a job survives the loss of any one process at a time: it
// never rolls back, and ends with the bits of an undisturbed run. Real processes; times are
// printed, not checked.

#include <signal.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/control_client.h"
#include "coordinator/observe/run_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

const Texts kReplicas = {"sync.replicas=2", "straggler.slowdown=4", "fault.failure_timeout_ms=2000",
                         "comm.resend_ms=1000"};

class ReplicasTest : public DaemonTest {
 protected:
  // Status of a run's coordinator; an error while there is none.
  absl::StatusOr<StatusReply> Status(const std::string& run) {
    const absl::StatusOr<CoordinatorAddress> address = ReadCoordinatorAddress(Path(run));
    if (!address.ok()) return address.status();
    if (client_ == nullptr || client_->address() != address->address) {
      absl::StatusOr<std::unique_ptr<ControlClient>> client =
          ControlClient::Connect(address->address, absl::Seconds(1));
      if (!client.ok()) return client.status();
      client_ = *std::move(client);
    }
    return client_->Status();
  }
  // Whether all nodes have joined and every segment has two copies.
  bool IsWhole(const std::string& run, int nodes) {
    const absl::StatusOr<StatusReply> status = Status(run);
    return status.ok() && status->phase() == RUNNING && status->nodes_size() == nodes &&
           status->segments_at_risk() == 0;
  }
  // Pid of a living process of a subcommand. Not the newest one: repeated crashes soon after a
  // start end the job.
  pid_t Any(const std::string& kind) {
    const std::vector<pid_t> pids = Pids(kind);
    EXPECT_FALSE(pids.empty()) << kind;
    if (pids.empty()) return -1;
    return pids[random_() % std::max<size_t>(1, pids.size() - 1)];
  }
  // Number of step lines in metrics.jsonl that contain `what`.
  size_t StepLines(const std::string& run, const std::string& what) const {
    std::ifstream file(Path(run) + "/metrics.jsonl");
    size_t count = 0;
    for (std::string line; std::getline(file, line);) {
      count += absl::StrContains(line, "\"kind\":\"step\"") && absl::StrContains(line, what);
    }
    return count;
  }
  // Waits for five more steps and prints the time.
  void WaitForMoreSteps(Process& job, const std::string& run, const std::string& after) {
    const absl::Time begin = absl::Now();
    const size_t steps = StepLines(run, "");
    ASSERT_TRUE(job.WaitUntil([&] { return StepLines(run, "") >= steps + 5; }, After(kPatience)))
        << after << "\n"
        << job.err();
    std::cout << after << ": five more steps after "
              << absl::ToInt64Milliseconds(absl::Now() - begin) << " ms" << std::endl;
  }

  // Stops the job; expects that it never rolled back and has the bits of an undisturbed run.
  void ExpectNothingLost(Process& job, const std::string& run) {
    ASSERT_EQ(Run({"stop", Path(run)}).exit_code(), 0);
    ASSERT_TRUE(job.WaitForEnd(After(kPatience))) << job.err();
    for (Process* node : nodes_) ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
    ExpectOrderlyEnd(job, run);
    EXPECT_EQ(StepLines(run, "\"timeline\":1"), NewestCheckpoint(run)) << "it never went back";
    ExpectUndisturbedState(run);
  }

  std::mt19937 random_{7};
  std::unique_ptr<ControlClient> client_;
};

TEST_F(ReplicasTest, ContinuesAfterAnyProcessIsKilledWithSameBits) {
  Process& train =
      StartTraining("killed", Endless() + kReplicas + Texts{"cluster.spare_servers=1"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "killed", 20));
  const int nodes = 5;  // 2 servers, a spare, 2 workers
  for (const std::string kind :
       {"server", "worker", "coordinator", "server", "coordinator", "worker", "server"}) {
    ASSERT_TRUE(train.WaitUntil([&] { return IsWhole("killed", nodes); }, After(kPatience)))
        << "not whole before a " << kind << " is killed\n"
        << train.err();
    ASSERT_EQ(kill(Any(kind), SIGKILL), 0);
    ASSERT_NO_FATAL_FAILURE(WaitForMoreSteps(train, "killed", absl::StrCat("killed a ", kind)));
  }
  ExpectNothingLost(train, "killed");
}

TEST_F(ReplicasTest, AServerThatStoppedForTooLongIsFencedOff) {
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless() + kReplicas));
  ASSERT_TRUE(coordinator().WaitUntil([&] { return IsWhole("run", 4); }, After(kPatience)));
  Process& stopped = *nodes_.front();
  stopped.Signal(SIGSTOP);
  const auto lost = [&] { return absl::StrContains(coordinator().err(), "was lost"); };
  ASSERT_TRUE(coordinator().WaitUntil(lost, After(kPatience))) << coordinator().err();
  ASSERT_NO_FATAL_FAILURE(WaitForMoreSteps(coordinator(), "run", "a server was missed"));
  stopped.Signal(SIGCONT);
  ASSERT_TRUE(stopped.WaitForEnd(After(kPatience))) << stopped.err();
  ExpectErrorLine(stopped, {"not a member"});
  ExpectNothingLost(coordinator(), "run");
}

TEST_F(ReplicasTest, AServerJoinsAndAnotherIsDrainedWhileTrainingGoesOn) {
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless() + kReplicas));
  StartServers(1);
  ASSERT_TRUE(coordinator().WaitUntil([&] { return IsWhole("run", 5); }, After(kPatience)))
      << coordinator().err();
  Process& first = *nodes_.front();
  const absl::StatusOr<StatusReply> status = Status("run");
  ASSERT_TRUE(status.ok()) << status.status();
  const auto is_first = [&](const NodeStatus& node) {
    return node.pid() == static_cast<uint32_t>(first.pid());
  };
  const auto node = std::find_if(status->nodes().begin(), status->nodes().end(), is_first);
  ASSERT_NE(node, status->nodes().end());
  const Process& drain = Run({"drain", node->name(), "--coordinator", address()});
  ASSERT_EQ(drain.exit_code(), 0) << drain.err();
  ASSERT_TRUE(first.WaitForEnd(After(kPatience))) << coordinator().err();
  EXPECT_EQ(first.exit_code(), 0) << first.err();
  ASSERT_TRUE(coordinator().WaitUntil([&] { return IsWhole("run", 4); }, After(kPatience)));
  ExpectNothingLost(coordinator(), "run");
}

}  // namespace
}  // namespace tug
