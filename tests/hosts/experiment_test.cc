// SPDX-License-Identifier: Apache-2.0
// `tug experiment` as a user runs it: short real jobs, their results, and cleanup after a kill.

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/hosts/testbed.h"
#include "nlohmann/json.hpp"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kProfile[] = R"(
name: "late"
batch: 1
blocks { name: "a" parameters: 2000 forward_ms: 10 backward_ms: 20 }
blocks { name: "b" parameters: 1000 forward_ms: 3 backward_ms: 5 }
blocks { name: "fc" parameters: 100000 forward_ms: 1 backward_ms: 1 }
)";

constexpr char kOrders[] = R"(
name: "orders"
question: "Which order of sending is best?"
job {
  compute: REPLAY
  replay { profile: "late.textproto" }
  cluster { servers: 2 workers: 2 virtual_workers: 2 lanes_per_server: 1 }
  train { steps: 5 }
  optimizer { clip: OFF }
  comm { segment_elements: 4096 partition_bytes: 16384 credit_bytes: 65536 shared_memory: false }
  checkpoint { interval: 0 }
  trace { first_step: 3 steps: 2 }
}
axes { field: "comm.scheduler" values: ["FIFO", "BYTESCHEDULER"] }
repeats: 1
warm_up_steps: 1
measures: ["mean_step_time", "exposed_time", "overlap"]
sections: SCHEDULING
)";

class ExperimentTest : public TugTest {
 protected:
  ExperimentTest() { Write("late.textproto", kProfile); }

  // Exchanges 0.4 MB with two workers in each direction, in steps of tens of milliseconds.
  Texts Orders(const Texts& more) const {
    Write("orders.textproto", kOrders);
    return Texts{"experiment", "orders.textproto", "--out", Path("out")} + more;
  }

  // Rows of an experiment's rows.jsonl.
  std::vector<nlohmann::json> Rows() const {
    std::vector<nlohmann::json> rows;
    std::istringstream lines(ReadText(Path("out/rows.jsonl")));
    for (std::string line; std::getline(lines, line);) {
      rows.push_back(nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false));
    }
    return rows;
  }
};

bool TestbedIsThere() {
  std::error_code error;
  if (fs::exists("/sys/class/net/tug-bridge")) return true;
  for (const fs::directory_entry& entry : fs::directory_iterator("/run/netns", error)) {
    if (entry.path().filename().string().rfind("tug-", 0) == 0) return true;
  }
  return false;
}

// Reason that no testbed can be made here; empty if it can.
std::string LackOfTestbed() { return std::string(Testbed::Up(1, "1gbit").status().message()); }

TEST_F(ExperimentTest, ComparesOrdersOfSendingOnLoopback) {
  const Process& run = Run(Orders({"--set", "comm.impair.rate_mbit=50"}));
  ASSERT_EQ(run.exit_code(), 0) << run.err();
  EXPECT_THAT(run.err(), Not(HasSubstr("tug: ")));
  EXPECT_THAT(run.out(), AllOf(HasSubstr("## Order of sending"), HasSubstr("| BYTESCHEDULER |"),
                               HasSubstr("times as fast as FIFO"),
                               HasSubstr("There is no lower bound"),  // loopback has no links
                               HasSubstr("/out/report.html")));
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(ReadText(Path("out/rows.jsonl")), '\n'))) {
    if (line.empty()) continue;
    const auto measures = nlohmann::json::parse(line)["measures"];
    EXPECT_GT(measures["mean_step_time"].get<double>(), 39) << "computing alone takes 40 ms";
    EXPECT_GT(measures["exposed_time"].get<double>(), 0);
    EXPECT_GT(measures["overlap"].get<double>(), 0);
  }
  EXPECT_THAT(ReadText(Path("out/report.html")),
              AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("Timelines"), HasSubstr("backward fc"),
                    HasSubstr("pull fc"), HasSubstr("times as long"), HasSubstr("</html>")));
  EXPECT_THAT(ReadText(Path("out/report.md")), HasSubstr("## Order of sending"));
  ExpectNobodyLeft();
}

// The built-in file with batches of a few milliseconds: every mode, undisturbed, with a slow worker
// and with pauses.
TEST_F(ExperimentTest, ComparesSyncPolicies) {
  const Process& run =
      Run(Texts{"experiment", "sync", "--repeats", "1", "--out", Path("out")} +
          Set({"replay.profile=late.textproto", "replay.time_scale=0.25", "replay.size_scale=1",
               "cluster.workers=2", "cluster.virtual_workers=2", "cluster.servers=1",
               "train.steps=16"}));
  ASSERT_EQ(run.exit_code(), 0) << run.err();
  EXPECT_THAT(run.err(), Not(HasSubstr("tug: ")));
  EXPECT_THAT(
      run.out(),
      AllOf(HasSubstr("| backup(1) |"), HasSubstr("local(16) with a worker 4 times as slow: "),
            HasSubstr("of the straggler's pace"), HasSubstr("of the bound 0.6250"),
            HasSubstr("asp with random pauses: "), HasSubstr("/out/report.html")));
  const std::vector<nlohmann::json> rows = Rows();
  ASSERT_EQ(rows.size(), 18u);
  for (const nlohmann::json& row : rows) {
    const std::string name = row["case"].get<std::string>();
    const nlohmann::json& measures = row["measures"];
    EXPECT_EQ(row["error"], "") << name;
    EXPECT_GT(measures["batch_rate"].get<double>(), 0) << name;
    EXPECT_GE(measures["most_wait_share"].get<double>(), measures["wait_share"].get<double>());
    if (name.find("persistent") == std::string::npos) {
      EXPECT_TRUE(measures["straggler_pace"].is_null()) << name;
      continue;
    }
    if (name.find("mode=bsp") == std::string::npos) continue;
    EXPECT_LT(measures["batch_rate"].get<double>(), 25.1) << "4 times 10 ms each";
    EXPECT_LT(measures["straggler_pace"].get<double>(), 102);
    EXPECT_TRUE(fs::exists(Path("out/" + row["folder"].get<std::string>() + "/trace.json")));
  }
  EXPECT_THAT(ReadText(Path("out/report.html")),
              AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("Steps and waits of each worker"),
                    HasSubstr("4 times as slow as the others"), HasSubstr("Time of each worker"),
                    HasSubstr("number of updates of a segment"), HasSubstr("% of bound"),
                    HasSubstr("</html>")));
  ExpectNobodyLeft();
}

// Two cases of the built-in file, run one after the other in one folder.
TEST_F(ExperimentTest, ComparesWhatSyncPoliciesLearn) {
  for (const char* name : {"mode=bsp, straggler=none", "mode=asp, straggler=none"}) {
    const Process& run = Run(Texts{"experiment", "sync_learning", "--case", name, "--repeats", "1",
                                   "--out", Path("out")} +
                             Set({"model.layers=1", "model.width=32", "train.steps=16",
                                  "train.eval_interval=8", "optimizer.warmup_steps=4"}));
    ASSERT_EQ(run.exit_code(), 0) << run.err();
  }
  const std::vector<nlohmann::json> rows = Rows();
  ASSERT_EQ(rows.size(), 2u);
  for (const nlohmann::json& row : rows) {
    EXPECT_GT(row["measures"]["final_loss"].get<double>(), 1);
    EXPECT_TRUE(row["measures"]["straggler_pace"].is_null()) << "workers share cores";
  }
  EXPECT_THAT(ReadText(Path("out/report.md")),
              AllOf(HasSubstr("- asp, stragglers: none: final loss "),
                    HasSubstr("compared with undisturbed bsp")));
  EXPECT_THAT(ReadText(Path("out/report.html")),
              AllOf(HasSubstr("<h3>Losses</h3>"), HasSubstr("straggler none<"),
                    HasSubstr("Staleness"), HasSubstr("</html>")));
  ExpectNobodyLeft();
}

constexpr char kCodecs[] = R"(
name: "codecs"
question: "Does it pay?"
job {
  cluster { servers: 1 workers: 2 virtual_workers: 2 }
  data { tokenizer: CHARACTER }
  model { layers: 1 width: 64 heads: 2 context: 32 }
  train { steps: 7 global_batch: 4 eval_interval: 4 eval_samples: 16 }
  comm { push_codec { warmup_steps: 0 } }
  checkpoint { interval: 0 }
}
made_up_text_bytes: 20000
place { testbed { loopback: true } }
axes {
  name: "codec"
  value { label: "fp32" }
  value { label: "fp32/bf16" set: "comm.pull_format=BF16" }
}
axes { field: "place.testbed.link" values: ["none", "50mbit"] }
baseline { where: "codec=fp32" }
verdicts { measure: "step_time" margin: 0.05 yes: "pays" no: "does not pay" }
verdicts { measure: "final_loss" margin: -0.03 yes: "as well" no: "not as well" }
repeats: 1
measures: ["step_time", "worker_socket_bytes", "server_socket_bytes", "final_loss"]
figures { measure: "step_time" over: "codec" panels: "link" part: "exposed_time" }
sections: LOSSES
)";

// Steps of a few milliseconds; bf16 halves the bytes of a weight.
TEST_F(ExperimentTest, ComparesCodecsOnLinks) {
  Write("codecs.textproto", kCodecs);
  const Process& run = Run({"experiment", "codecs.textproto", "--out", Path("out")});
  ASSERT_EQ(run.exit_code(), 0) << run.err();
  EXPECT_THAT(run.err(), Not(HasSubstr("tug: ")));
  EXPECT_THAT(run.out(), AllOf(HasSubstr("## Pays, or does not pay"), HasSubstr("| fp32/bf16 |"),
                               HasSubstr("at most 50 Mbit/s sent by each process"),
                               HasSubstr("/out/report.html")));
  std::map<std::string, nlohmann::json> measures;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(ReadText(Path("out/rows.jsonl")), '\n'))) {
    if (line.empty()) continue;
    const nlohmann::json row = nlohmann::json::parse(line);
    measures[row["case"].get<std::string>()] = row["measures"];
  }
  ASSERT_EQ(measures.size(), 4u);
  const nlohmann::json& fp32 = measures["codec=fp32, link=50mbit"];
  const nlohmann::json& bf16 = measures["codec=fp32/bf16, link=50mbit"];
  const auto ratio = [&](const char* name) {
    return bf16[name].get<double>() / fp32[name].get<double>();
  };
  EXPECT_GT(fp32["worker_socket_bytes"], fp32["pushed_bytes"]) << "headers are counted";
  EXPECT_NEAR(ratio("worker_socket_bytes"), 1, 0.1);
  EXPECT_LT(ratio("server_socket_bytes"), 0.8);
  // Excludes acknowledgements after the last step.
  EXPECT_NEAR(ratio("pushed_bytes"), 1, 0.2);
  EXPECT_NEAR(ratio("pulled_bytes"), 0.5, 0.1);
  EXPECT_EQ(measures["codec=fp32, link=none"]["socket_bytes"], 0) << "shared memory";
  EXPECT_EQ(measures["codec=fp32, link=none"]["final_loss"], fp32["final_loss"])
      << "a link changes nothing of what is learned";
  const std::string page = ReadText(Path("out/report.html"));
  EXPECT_THAT(page, AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("As well, or not as well"),
                          HasSubstr("pushed and pulled (MB)"), HasSubstr("Hatched: exposed time"),
                          HasSubstr("</html>")));
  EXPECT_THAT(ReadText(Path("out/figure-1.svg")), HasSubstr("link 50mbit"));
  ExpectNobodyLeft();
}

// The built-in file: two of its cases, run one after the other in the same folder.
TEST_F(ExperimentTest, ComparesWaysToExchange) {
  EXPECT_THAT(Run({"experiment", "exchange", "--case", "link=none", "--dry-run"}).out(),
              AllOf(HasSubstr("11 cases, 3 repeats each"), Not(HasSubstr("200mbit"))));
  for (const auto& [one, row] : {std::pair("case=servers:2, link=none", "| servers:2 "),
                                 std::pair("case=zero1,link=none", "| zero1 ")}) {
    const Process& run = Run({"experiment", "exchange", "--case", one, "--repeats", "1", "--set",
                              "train.steps=5", "--set", "replay.profile=late.textproto", "--set",
                              "replay.size_scale=1", "--out", Path("out")});
    ASSERT_EQ(run.exit_code(), 0) << run.err();
    EXPECT_THAT(run.err(), Not(HasSubstr("tug: ")));
    EXPECT_THAT(run.err(), HasSubstr("1 case, 1 repeat each"));
    EXPECT_THAT(run.out(), AllOf(HasSubstr(row), HasSubstr("/out/report.html")));
  }
  for (const char* folder : {"out/runs/003-servers_2-none-r1", "out/runs/017-zero1-none-r1"}) {
    EXPECT_TRUE(fs::exists(Path(std::string(folder) + "/metrics.jsonl"))) << folder;
  }
  EXPECT_THAT(ReadText(Path("out/report.html")),
              AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("Which way to exchange is fastest?"),
                    HasSubstr("Ways to exchange"), HasSubstr("optimizer state"),
                    Not(HasSubstr("The alpha-beta model")), HasSubstr("</html>")))
      << "there is no link";
  EXPECT_THAT(ReadText(Path("out/report.md")),
              AllOf(HasSubstr("- link none: the fastest, "), HasSubstr("the slowest, "),
                    HasSubstr("| zero1     | "), HasSubstr("### Memory")));
  ExpectNobodyLeft();
}

// Links need root; without it, one error line appears before anything runs.
TEST_F(ExperimentTest, MakesItsHostsOrSaysWhatItLacks) {
  const std::string lack = LackOfTestbed();
  const Process& run =
      Run({"experiment", "exchange", "--case", "case=mixed:1, link=200mbit", "--repeats", "1",
           "--set", "train.steps=5", "--set", "replay.profile=late.textproto", "--set",
           "replay.size_scale=1", "--out", Path("out")});
  if (!lack.empty()) {
    ExpectErrorLine(run, {geteuid() == 0 ? "deploy/testbed" : "--case"});
    GTEST_SKIP() << "skipped: " << lack;
  }
  ASSERT_EQ(run.exit_code(), 0) << run.err();
  const auto row = nlohmann::json::parse(ReadText(Path("out/rows.jsonl")));
  ASSERT_EQ(row["links"].size(), 5u) << "4 workers with a server each, and a server";
  for (const nlohmann::json& link : row["links"]) {
    EXPECT_GT(link["sent_bytes"].get<double>(), 5 * 0.8 * 412'000) << row;
  }
  EXPECT_THAT(ReadText(Path("out/report.html")),
              AllOf(HasSubstr("The alpha-beta model"), HasSubstr("Bytes of each host"),
                    HasSubstr("Compared with the alpha-beta model")));
  EXPECT_THAT(ReadText(Path("out/report.md")), HasSubstr("| link 200mbit | mixed:1 "));
  ExpectNobodyLeft();
}

// Neither overlap nor the location of the state changes weights: losses are equal.
TEST_F(ExperimentTest, ComparesStateOnTheDeviceAndOffIt) {
  const Process& run = Run({"experiment", "offload", "--warm-up", "2", "--steps", "4", "--out",
                            Path("out"), "--set", "device=CPU", "--set", "model.layers=1", "--set",
                            "model.width=32", "--set", "model.context=16"});
  ASSERT_EQ(run.exit_code(), 0) << run.err();
  EXPECT_THAT(run.err(), Not(HasSubstr("tug: ")));
  EXPECT_THAT(run.out(), AllOf(HasSubstr("| overlapped |"), HasSubstr("/out/report.html")));
  const auto json = nlohmann::json::parse(ReadText(Path("out/offload.json")));
  ASSERT_EQ(json["runs"].size(), 3u);
  for (const nlohmann::json& of_case : json["runs"]) {
    const std::string name = of_case["case"].get<std::string>();
    EXPECT_EQ(of_case["steps"].size(), 4u) << name;
    double seconds = 0, known = 0;
    for (const nlohmann::json& step : of_case["steps"]) {
      seconds += step["seconds"].get<double>();
      for (const char* part :
           {"busy_seconds", "bp_bubble_seconds", "fp_bubble_seconds", "other_seconds"}) {
        EXPECT_GE(step[part].get<double>(), 0) << name;
        known += step[part].get<double>();
      }
    }
    EXPECT_NEAR(known, seconds, 1e-6) << name;
    EXPECT_NEAR(of_case["loss"].get<double>(), json["runs"][0]["loss"].get<double>(), 1e-6) << name;
    EXPECT_EQ(of_case["exposed"].is_null(), name == "plain");
  }
  EXPECT_GT(json["runs"][0]["state_bytes"].get<double>(), json["runs"][2]["state_bytes"]);
  // In steps of a millisecond, which of the two bubbles has the wait varies between runs.
  EXPECT_GT(json["runs"][1]["bp_bubble_seconds"].get<double>() +
                json["runs"][1]["fp_bubble_seconds"].get<double>(),
            0);
  const std::string page = ReadText(Path("out/report.html"));
  EXPECT_THAT(page, AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("Utilisation over time"),
                          HasSubstr("BP bubble"), HasSubstr("</html>")));
  EXPECT_TRUE(fs::exists(Path("out/overlapped/trace.json")));
  ExpectNobodyLeft();
}

TEST_F(ExperimentTest, RefusesWhatItCannotRun) {
  ExpectErrorLine(Run({"experiment", "scheduling", "--set", "comm.nothing=1"}), {"comm.nothing"});
  ExpectErrorLine(Run({"experiment", "exchange", "--case", "case=rings"}),
                  {"did you mean case=ring?"});
  ExpectErrorLine(Run({"experiment", "--dry-run", "offload"}),
                  {"--dry-run", "offload has its own options"});
  ExpectErrorLine(Run({"experiment", "offload", "--set", "optimizer.clip=OFF"}), {"--cases"});
  EXPECT_FALSE(fs::exists(Path("runs"))) << "nothing was begun";
}

// With a host for each node, the lower bound of all schedules is known.
TEST_F(ExperimentTest, PutsTheLowerBoundBesideOrdersOnATestbed) {
  if (const std::string lack = LackOfTestbed(); !lack.empty()) GTEST_SKIP() << "skipped: " << lack;
  const Process& run = Run(Orders({"--set", "place.testbed.link=50mbit"}));
  ASSERT_EQ(run.exit_code(), 0) << run.err();
  EXPECT_THAT(run.out(),
              AllOf(HasSubstr("times the lower bound"), HasSubstr("Simulated step times"),
                    Not(HasSubstr("There is no lower bound"))));
  EXPECT_THAT(ReadText(Path("out/report.html")),
              AllOf(HasSubstr("the fluid schedule on the busiest link"), HasSubstr(" x bound")));
  ExpectNobodyLeft();
}

TEST_F(ExperimentTest, LeavesNothingBehindWhenItIsKilledOnATestbed) {
  if (const std::string lack = LackOfTestbed(); !lack.empty()) GTEST_SKIP() << "skipped: " << lack;
  Process& run =
      Start(Orders({"--set", "place.testbed.link=50mbit", "--set", "train.steps=1000000"}));
  const bool began = run.WaitUntil(
      [&] {
        return ReadText(Path("out/runs/001-FIFO-r1/metrics.jsonl")).find("\"step\"") !=
               std::string::npos;
      },
      After(kPatience));
  ASSERT_TRUE(began) << run.out() << run.err();
  EXPECT_TRUE(TestbedIsThere());
  EXPECT_EQ(Pids("worker").size(), 2u);
  run.Signal(SIGKILL);
  ASSERT_TRUE(run.WaitForEnd(After(kPatience)));
  const absl::Time deadline = After(kPatience);
  while (TestbedIsThere() && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_FALSE(TestbedIsThere());
  ExpectNobodyLeft();
}

}  // namespace
}  // namespace tug
