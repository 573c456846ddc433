// SPDX-License-Identifier: Apache-2.0
// A host that is unreachable for ten seconds: the job continues with replicas of its segments, and
// the host's server is fenced off when it is back. Uses network namespaces, hence needs root;
// skipped otherwise.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "coordinator/observe/run_folder.h"
#include "gtest/gtest.h"
#include "launch/hosts/testbed.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

constexpr absl::Duration kCut = absl::Seconds(10);

class LinkCutTest : public TugTest {
 protected:
  // Starts `tug arguments...` in a host of the testbed.
  Process& StartIn(const NetworkHost& host, const Texts& arguments) {
    return StartProgram(
        kIp, Texts{"netns", "exec", host.name, std::filesystem::absolute("cli/tug").string()} +
                 arguments);
  }
  void SetLink(const NetworkHost& host, const std::string& state) {
    Process& ip = StartProgram(kIp, {"-n", host.name, "link", "set", "eth0", state});
    ASSERT_TRUE(ip.WaitForEnd(After(kPatience)));
    ASSERT_EQ(ip.exit_code(), 0) << ip.err();
  }
  uint64_t Steps() const {
    const absl::StatusOr<Losses> losses = ReadLosses(Path("run"));
    return losses.ok() && !losses->training.empty() ? losses->training.rbegin()->first : 0;
  }
  bool AllInTheFirstTimeline() const {
    std::ifstream file(Path("run/metrics.jsonl"));
    for (std::string line; std::getline(file, line);) {
      if (absl::StrContains(line, "\"timeline\":2")) return false;
    }
    return true;
  }
};

TEST_F(LinkCutTest, AServerThatIsCutOffIsReplacedByItsCopiesAndFencedOffLater) {
  const absl::StatusOr<std::unique_ptr<Testbed>> testbed = Testbed::Up(5, "1gbit");
  if (!testbed.ok()) GTEST_SKIP() << testbed.status();
  const std::vector<NetworkHost>& hosts = (*testbed)->hosts();

  const Texts keys = {"--keys", Path("keys")};
  ASSERT_EQ(Run({"keys", Path("keys")}).exit_code(), 0);
  Process& coordinator = StartIn(
      hosts[0],
      Texts{"coordinator", job(), "--listen", hosts[0].address + ":0", "--run-dir", Path("run")} +
          keys +
          Set(Endless() +
              Texts{"sync.replicas=2", "fault.failure_timeout_ms=1000", "straggler.slowdown=6"}));
  std::string address;
  const auto listens = [&] {
    const absl::StatusOr<CoordinatorAddress> read = ReadCoordinatorAddress(Path("run"));
    if (read.ok()) address = read->address;
    return read.ok();
  };
  ASSERT_TRUE(coordinator.WaitUntil(listens, After(kPatience))) << coordinator.err();
  const Texts to_coordinator = Texts{"--coordinator", address} + keys;
  Process& cut = StartIn(hosts[1], Texts{"server", "--listen", hosts[1].address} + to_coordinator);
  Process& other =
      StartIn(hosts[2], Texts{"server", "--listen", hosts[2].address} + to_coordinator);
  Process& worker_a = StartIn(hosts[3], Texts{"worker"} + to_coordinator);
  Process& worker_b = StartIn(hosts[4], Texts{"worker"} + to_coordinator);
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(coordinator, "run", 20));

  const absl::Time begin = absl::Now();
  ASSERT_NO_FATAL_FAILURE(SetLink(hosts[1], "down"));
  const auto lost = [&] { return absl::StrContains(coordinator.err(), "was lost"); };
  ASSERT_TRUE(coordinator.WaitUntil(lost, After(kPatience))) << coordinator.err();
  const absl::Time detected = absl::Now();
  const uint64_t step = Steps();
  ASSERT_TRUE(coordinator.WaitUntil([&] { return Steps() >= step + 5; }, After(kPatience)))
      << coordinator.err();
  std::cout << "cut off a server: missed after " << absl::ToInt64Milliseconds(detected - begin)
            << " ms, five more steps " << absl::ToInt64Milliseconds(absl::Now() - detected)
            << " ms later" << std::endl;
  // The link stays down for kCut in total.
  coordinator.WaitUntil([] { return false; }, begin + kCut);
  ASSERT_FALSE(coordinator.ended()) << "the job has ended before the link was back";
  ASSERT_NO_FATAL_FAILURE(SetLink(hosts[1], "up"));
  ASSERT_TRUE(cut.WaitForEnd(After(kPatience))) << cut.err();
  ExpectErrorLine(cut, {"not a member"});

  Process& stop = StartIn(hosts[0], Texts{"stop", Path("run")} + keys);
  ASSERT_TRUE(stop.WaitForEnd(After(kPatience)));
  ASSERT_EQ(stop.exit_code(), 0) << stop.err();
  ASSERT_TRUE(coordinator.WaitForEnd(After(kPatience))) << coordinator.err();
  for (Process* node : {&other, &worker_a, &worker_b}) {
    ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
    EXPECT_EQ(node->exit_code(), 0) << node->err();
  }
  EXPECT_TRUE(AllInTheFirstTimeline()) << "it never went back";
  ExpectOrderlyEnd(coordinator, "run");
  ExpectUndisturbedState("run");
}

}  // namespace
}  // namespace tug
