// SPDX-License-Identifier: Apache-2.0
// Floods of unauthenticated connections to every port of a job with keys, whose processes may open
// few files. Members, checkpoints and the journal still get the descriptors they need.

#include <sys/resource.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/control_client.h"
#include "coordinator/observe/run_folder.h"
#include "gtest/gtest.h"
#include "security/key_file.h"
#include "tests/support/hostile_peer.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

constexpr uint64_t kMaxFiles = 200;
constexpr size_t kAtOnce = 400;
constexpr size_t kAtLeast = 4000;

class FloodTest : public TugTest, public ::testing::WithParamInterface<Kind> {
 protected:
  // Finds the ports of lanes and coordinator: HOST:PORT, or with a scheme.
  void FindPorts(const std::string& run) {
    const std::string text = ReadText(Path(run) + "/" + kCoordinatorFile);
    const std::string address = text.substr(0, text.find_first_of(" \n"));
    const absl::StatusOr<JobKeys> keys = ReadKeyFile(Path(run) + "/keys");
    ASSERT_TRUE(keys.ok()) << keys.status();
    const auto client = ControlClient::Connect(address, kPatience, *keys);
    ASSERT_TRUE(client.ok()) << client.status();
    const absl::StatusOr<StatusReply> status = (*client)->Status();
    ASSERT_TRUE(status.ok()) << status.status();
    for (const NodeStatus& node : status->nodes()) {
      ports_.insert(ports_.end(), node.lane_endpoints().begin(), node.lane_endpoints().end());
    }
    ASSERT_EQ(ports_.size(), 2u);
    ports_.push_back(address);
  }

  // Opens kAtOnce / 4 connections, which replace the oldest ones. Their HTTP/2 preface lets those
  // to the coordinator pass its gate and reach gRPC.
  void Flood() {
    static const Bytes kBeginOfHttp2 =
        BytesOf(std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33));
    for (size_t i = 0; i < kAtOnce / 4; ++i) {
      auto stranger = std::make_unique<RawConnection>(ports_[opened_ % ports_.size()]);
      stranger->Write(kBeginOfHttp2);
      strangers_[opened_++ % kAtOnce] = std::move(stranger);
    }
  }

  std::vector<std::string> ports_;
  std::vector<std::unique_ptr<RawConnection>> strangers_{kAtOnce};
  size_t opened_ = 0;
};

TEST_P(FloodTest, TakesNothingFromTheJob) {
  Process& train = StartLimited(
      TrainArguments("run", Endless() + GetParam().settings + Texts{"checkpoint.interval=20"}),
      RLIMIT_NOFILE, kMaxFiles);
  ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(train, "run"));
  ASSERT_NO_FATAL_FAILURE(FindPorts("run"));
  const uint64_t before = NewestCheckpoint("run");
  const auto is_flooded = [&] {
    Flood();
    return opened_ >= kAtLeast && NewestCheckpoint("run") >= before + 60;
  };
  ASSERT_TRUE(train.WaitUntil(is_flooded, After(kPatience))) << opened_ << train.err();
  ASSERT_NO_FATAL_FAILURE(EndInOrder(train));
  ExpectOrderlyEnd(train, "run");
  ExpectUndisturbedState("run");
}

INSTANTIATE_TEST_SUITE_P(Modes, FloodTest,
                         ::testing::Values(Kind{"token", {"security.mode=TOKEN"}},
                                           Kind{"curve", {"security.mode=CURVE"}}),
                         NameOfKind);

}  // namespace
}  // namespace tug
