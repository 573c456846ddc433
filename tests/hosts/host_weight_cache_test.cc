// SPDX-License-Identifier: Apache-2.0
// placement.host_weight_cache on two hosts with two workers and two servers each: the bits of a
// parameter server, with fewer bytes between the hosts. Uses network namespaces, hence needs root;
// skipped otherwise.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/observe/run_folder.h"
#include "gtest/gtest.h"
#include "launch/hosts/testbed.h"
#include "nlohmann/json.hpp"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

constexpr uint32_t kHosts = 2;
constexpr uint32_t kWorkersOfHost = 2;
constexpr int kSteps = 200;

// Blocks of several segments, so that most blocks have parts on every server.
const Texts kJob = {absl::StrCat("train.steps=", kSteps),
                    "checkpoint.interval=200",
                    "train.eval_interval=0",
                    "data.validation_fraction=0",
                    "train.global_batch=4",
                    "cluster.virtual_workers=4",
                    "model.layers=6"};
const Texts kZero3 = {"placement.kind=ZERO3", "placement.prefetch_blocks=0", "cluster.workers=4",
                      "cluster.servers=4"};
const Texts kCached = {"placement.host_weight_cache=true"};

class HostWeightCacheTest : public TugTest {
 protected:
  // Totals over all servers for the whole job.
  struct Counters {
    double server_socket_bytes = 0;
    double cached_bytes = 0;
    double predicted_bytes = 0;
  };

  // Starts `tug arguments...` in a host of the testbed.
  Process& StartIn(const NetworkHost& host, const Texts& arguments) {
    return StartProgram(
        kIp, Texts{"netns", "exec", host.name, std::filesystem::absolute("cli/tug").string()} +
                 arguments);
  }
  // Key file of all jobs of the test, whose ports other hosts can reach.
  Texts Keys() {
    if (!std::filesystem::exists(Path("keys"))) Run({"keys", Path("keys")});
    return {"--keys", Path("keys")};
  }
  // Starts the coordinator on `host`, without nodes.
  Process& StartCoordinator(const NetworkHost& host, const std::string& run,
                            const Texts& settings) {
    Process& coordinator = StartIn(
        host, Texts{"coordinator", job(), "--listen", host.address + ":0", "--run-dir", Path(run)} +
                  Keys() + Set(settings));
    address_.clear();
    const auto listens = [&] {
      const absl::StatusOr<CoordinatorAddress> read = ReadCoordinatorAddress(Path(run));
      if (read.ok()) address_ = read->address;
      return read.ok();
    };
    EXPECT_TRUE(coordinator.WaitUntil(listens, After(kPatience))) << coordinator.err();
    return coordinator;
  }
  std::vector<Process*> StartNodes(const std::vector<NetworkHost>& hosts) {
    std::vector<Process*> nodes;
    for (uint32_t i = 0; i < kWorkersOfHost; ++i) {
      for (const NetworkHost& host : hosts) {
        nodes.push_back(&StartIn(
            host, Texts{"server", "--listen", host.address, "--coordinator", address_} + Keys()));
        nodes.push_back(&StartIn(host, Texts{"worker", "--coordinator", address_} + Keys()));
      }
    }
    return nodes;
  }
  void TrainOn(const std::vector<NetworkHost>& hosts, const std::string& run,
               const Texts& settings) {
    Process& coordinator = StartCoordinator(hosts[0], run, settings);
    ASSERT_FALSE(HasFailure());
    const std::vector<Process*> nodes = StartNodes(hosts);
    ASSERT_TRUE(coordinator.WaitForEnd(After(2 * kPatience))) << coordinator.err();
    ASSERT_EQ(coordinator.exit_code(), 0) << coordinator.err();
    for (Process* node : nodes) {
      ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
      EXPECT_EQ(node->exit_code(), 0) << node->err();
    }
  }
  CheckpointState StateOf(const std::string& run) const {
    const absl::StatusOr<CheckpointState> state = ReadState(Path(run));
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(CheckpointState());
  }
  void ExpectSameResult(const std::string& expected, const std::string& actual) const {
    ExpectSameState(StateOf(expected), StateOf(actual));
    const absl::StatusOr<Losses> a = ReadLosses(Path(expected)), b = ReadLosses(Path(actual));
    ASSERT_TRUE(a.ok()) << a.status();
    ASSERT_TRUE(b.ok()) << b.status();
    ExpectSameLosses(*a, *b);
  }
  Counters CountersOf(const std::string& run) const {
    std::ifstream file(Path(run) + "/metrics.jsonl");
    Counters counters;
    for (std::string line; std::getline(file, line);) {
      if (!absl::StrContains(line, "\"kind\":\"node\"")) continue;
      const auto json = nlohmann::json::parse(line);
      if (json.at("role") != "server") continue;
      const auto bytes = [&](const char* name) { return json.value(name, 0.0); };
      counters.server_socket_bytes += bytes("socket_bytes");
      counters.cached_bytes += bytes("cached_bytes");
      counters.predicted_bytes += bytes("predicted_held_bytes");
    }
    return counters;
  }
  // Size of the job's parameters in FP32.
  static double ParameterBytes(const CheckpointState& state) {
    double bytes = 0;
    for (const auto& [name, bits] : state.bits) {
      if (absl::EndsWith(name, "/w")) bytes += 4.0 * static_cast<double>(bits.size());
    }
    return bytes;
  }

  std::string address_;  // of the coordinator
};

// A host owns half of the parameters, Psi, and gets the other half from the other host: twice per
// step for its two workers without the cache (less what the window keeps), once for both with it.
// Servers also send messages without weights.
TEST_F(HostWeightCacheTest, ChangesNoBitAndWeightsReachAHostOnce) {
  Train("servers", kJob + Texts{"cluster.workers=2", "cluster.servers=1"});
  ASSERT_FALSE(HasFailure());
  const absl::StatusOr<std::unique_ptr<Testbed>> testbed = Testbed::Up(kHosts, "1gbit");
  if (!testbed.ok()) GTEST_SKIP() << testbed.status();
  const std::vector<NetworkHost>& hosts = (*testbed)->hosts();
  ASSERT_NO_FATAL_FAILURE(TrainOn(hosts, "zero3", kJob + kZero3));
  ASSERT_NO_FATAL_FAILURE(TrainOn(hosts, "cached", kJob + kZero3 + kCached));
  ExpectSameResult("servers", "zero3");
  ExpectSameResult("servers", "cached");

  const double parameters = ParameterBytes(StateOf("servers"));
  const Counters without = CountersOf("zero3"), with = CountersOf("cached");
  const double per_host = parameters * kSteps * kHosts;
  std::cout << "of the parameters' bytes, servers send in a step and host by sockets: "
            << without.server_socket_bytes / per_host << " without, "
            << with.server_socket_bytes / per_host << " with a cache of "
            << with.cached_bytes / parameters << " in all" << std::endl;
  EXPECT_LT(with.server_socket_bytes, 0.7 * per_host);
  EXPECT_GT(without.server_socket_bytes, 1.5 * per_host);
  EXPECT_EQ(without.cached_bytes, 0);
  EXPECT_DOUBLE_EQ(with.cached_bytes, parameters) << "each host has the half of the other";
  EXPECT_DOUBLE_EQ(with.predicted_bytes, without.predicted_bytes + with.cached_bytes);
}

TEST_F(HostWeightCacheTest, ALostServerThatKeptWeightsChangesNoBit) {
  Train("undisturbed", kJob + Texts{"cluster.workers=2", "cluster.servers=1"});
  ASSERT_FALSE(HasFailure());
  const absl::StatusOr<std::unique_ptr<Testbed>> testbed = Testbed::Up(kHosts, "1gbit");
  if (!testbed.ok()) GTEST_SKIP() << testbed.status();
  const std::vector<NetworkHost>& hosts = (*testbed)->hosts();
  // Replicas of segments survive a lost server of a parameter server whose hosts also have workers.
  Process& coordinator = StartCoordinator(hosts[0], "killed",
                                          kJob + kCached +
                                              Texts{"cluster.workers=4", "cluster.servers=4",
                                                    "sync.replicas=2", "straggler.slowdown=4"});
  ASSERT_FALSE(HasFailure());
  const std::vector<Process*> nodes = StartNodes(hosts);
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(coordinator, "killed", 40));
  const std::vector<pid_t> servers = Pids("server");
  ASSERT_EQ(servers.size(), 4u);
  ASSERT_EQ(kill(servers.back(), SIGKILL), 0);
  ASSERT_TRUE(coordinator.WaitForEnd(After(2 * kPatience))) << coordinator.err();
  ASSERT_EQ(coordinator.exit_code(), 0) << coordinator.err();
  EXPECT_TRUE(absl::StrContains(coordinator.err(), "was lost")) << coordinator.err();
  for (Process* node : nodes) ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
  EXPECT_GT(CountersOf("killed").cached_bytes, 0);
  ExpectSameState(StateOf("undisturbed"), StateOf("killed"));
}

}  // namespace
}  // namespace tug
