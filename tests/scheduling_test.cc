// SPDX-License-Identifier: Apache-2.0
// Bytes in flight are bounded: real processes over TCP with less credit than weights in each
// direction.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "control/control_client.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

constexpr uint64_t kPartitionBytes = 16384;
constexpr uint64_t kCreditBytes = 2 * kPartitionBytes;

class SchedulingTest : public DaemonTest, public testing::WithParamInterface<const char*> {};

TEST_P(SchedulingTest, HoldsBytesInSocketsAndQueuesBelowTheCredit) {
  ASSERT_NO_FATAL_FAILURE(
      StartJob(Endless() + Texts{"comm.shared_memory=false", "comm.segment_elements=4096",
                                 "comm.partition_bytes=16384", "comm.credit_bytes=32768",
                                 // Each of the two lanes gets half: one partition.
                                 "comm.pull_credit_bytes=32768",
                                 std::string("comm.scheduler=") + GetParam()}));
  auto client = ControlClient::Connect(address(), kPatience);
  ASSERT_TRUE(client.ok()) << client.status();
  uint64_t of_workers = 0;
  uint64_t of_servers = 0;
  const auto reported = [&] {
    const absl::StatusOr<StatusReply> status = (*client)->Status();
    if (!status.ok()) return false;
    for (const NodeStatus& node : status->nodes()) {
      uint64_t& most = node.kind() == WORKER ? of_workers : of_servers;
      most = std::max(most, node.counters().most_outstanding_bytes());
    }
    return status->step() > 30 && of_workers > 0 && of_servers > 0;
  };
  ASSERT_TRUE(coordinator().WaitUntil(reported, After(kPatience))) << coordinator().err();
  EXPECT_EQ(of_workers, kCreditBytes) << "all of it is used, and no more";
  EXPECT_EQ(of_servers, kPartitionBytes);
  ASSERT_TRUE((*client)->Stop().ok());
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  EXPECT_EQ(coordinator().exit_code(), 0) << coordinator().err();
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, SchedulingTest,
                         testing::Values("FIFO", "PRIORITY", "BYTESCHEDULER"),
                         [](const auto& policy) { return policy.param; });

}  // namespace
}  // namespace tug
