// SPDX-License-Identifier: Apache-2.0
// `tug explain` of real processes: the slow worker is blamed, the effect of a remedy is predicted,
// and the prediction is compared with a run that has it (deploy/score_prediction). Uses replays,
// whose workers sleep: a busy machine then slows down the whole job, not a single worker.

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

constexpr uint32_t kSlowVirtualWorker = 1;

class ExplainTest : public TugTest {
 protected:
  ExplainTest() {
    Write("late.textproto", R"(
        name: "late" source: "made up" batch: 16
        blocks { name: "a" parameters: 40000 forward_ms: 5 backward_ms: 10 }
        blocks { name: "b" parameters: 40000 forward_ms: 5 backward_ms: 10 }
        blocks { name: "c" parameters: 80000 forward_ms: 5 backward_ms: 10 })");
    Write("job.textproto", R"(
        name: "explained"
        compute: REPLAY
        replay { profile: "late.textproto" }
        cluster { servers: 2 workers: 3 }
        train { steps: 16 }
        optimizer { clip: OFF }
        comm { segment_elements: 8192 partition_bytes: 32768 }
        checkpoint { interval: 0 }
        fault { heartbeat_ms: 20 })");
  }

  // Trains with a trace and returns the JSON of `tug explain`.
  Json Explain(const std::string& run, const Texts& settings) {
    Process& train = StartTraining(run, settings, {"--trace-steps", "4..14"});
    EXPECT_TRUE(train.WaitForEnd(After(kPatience)));
    EXPECT_EQ(train.exit_code(), 0) << train.err();
    EXPECT_THAT(train.err(), HasSubstr("critical path of 11 steps, "));
    EXPECT_THAT(train.err(), HasSubstr("largest part of a step, in 11 steps: "));
    EXPECT_THAT(train.err(), HasSubstr("worker with the largest part, in 11 steps: "));
    const Process& explain = Run({"explain", Path(run), "--json"});
    EXPECT_EQ(explain.exit_code(), 0) << explain.err();
    Json json = Json::parse(explain.out(), nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(json.is_object()) << explain.out();
    return json;
  }

  Json TraceOf(const std::string& run) const {
    return Json::parse(ReadText(Path(run) + "/trace.json"), nullptr, false);
  }

  // Each chain is as long as its step, and every part has a positive length.
  static void ExpectChainsAreWhole(const Json& explained) {
    ASSERT_EQ(explained["chains"].size(), 11u);
    double parts = 0;
    for (const Json& row : explained["blame"]) parts += row["part"].get<double>();
    EXPECT_NEAR(parts, 1, 1e-6);
    for (const Json& chain : explained["chains"]) {
      double at = 0;
      for (const Json& part : chain["parts"]) {
        EXPECT_NEAR(part["begin_seconds"].get<double>(), at, 1e-6);
        EXPECT_GT(part["seconds"].get<double>(), 0);
        at += part["seconds"].get<double>();
      }
      EXPECT_NEAR(at, chain["seconds"].get<double>(), 1e-6);
    }
    EXPECT_LT(explained["unexplained_part"].get<double>(), 0.5);
  }

  // Checks metrics.jsonl and the trace.
  void ExpectShownEverywhere(const std::string& run) const {
    const std::string metrics = ReadText(Path(run) + "/metrics.jsonl");
    size_t lines = 0;
    for (size_t at = 0; (at = metrics.find("\"kind\":\"critical_path\"", at)) != metrics.npos;
         ++at) {
      ++lines;
    }
    EXPECT_EQ(lines, 11u);
    size_t drawn = 0;
    const Json trace = TraceOf(run);
    for (const Json& event : trace["traceEvents"]) {
      drawn += event["ph"] == "X" && event["cat"] == "critical";
    }
    EXPECT_GT(drawn, 11u);
  }

  // The worker that runs a virtual worker: "worker-1".
  std::string CarrierOf(const std::string& run, uint32_t virtual_worker) const {
    const Json trace = TraceOf(run);
    std::map<uint32_t, std::string> names;  // by process id of the trace
    for (const Json& event : trace["traceEvents"]) {
      const auto pid = event["pid"].get<uint32_t>();
      if (event["name"] == "process_name") {
        const auto name = event["args"]["name"].get<std::string>();
        names[pid] = name.substr(0, name.find(' '));
      }
      if (event["ph"] != "X" || event["cat"] != "backward") continue;
      if (event["args"]["virtual_worker"] == virtual_worker) return names[pid];
    }
    return "nobody";
  }
};

TEST_F(ExplainTest, BlamesTheStragglerAndScoresWhatItsCureBrings) {
  const std::string slow = absl::StrCat("straggler.virtual_worker=", kSlowVirtualWorker);
  // Without shared memory: as on separate hosts.
  const Texts settings = {"comm.shared_memory=false", slow};
  const Json explained = Explain("slow", settings + Texts{"straggler.slowdown=5"});
  ExpectChainsAreWhole(explained);
  ExpectShownEverywhere("slow");
  const Json& blamed = explained["workers"][0];
  EXPECT_EQ(blamed["who"], CarrierOf("slow", kSlowVirtualWorker));
  EXPECT_GE(blamed["steps"].get<int>(), 9);
  EXPECT_GT(blamed["part"].get<double>(), 0.5);

  // The speed-up is at most 5.
  ASSERT_FALSE(explained["what_if"].is_null()) << explained["no_what_if"];
  const Json& best = explained["what_if"]["predictions"][0];
  EXPECT_EQ(best["name"], "the slowest worker as fast as the others");
  EXPECT_GT(best["speed_up"].get<double>(), 2);

  ASSERT_NO_FATAL_FAILURE(Train("cured", settings + Texts{"straggler.slowdown=1"}));
  Write("slow.json", explained.dump());
  const auto score = [&](const std::string& change) -> Process& {
    Process& process = StartProgram("deploy/score_prediction",
                                    {Path("slow.json"), Path("slow"), Path("cured"), change});
    EXPECT_TRUE(process.WaitForEnd(After(kPatience)));
    return process;
  };
  const Process& cured = score(best["name"].get<std::string>());
  ASSERT_EQ(cured.exit_code(), 0) << cured.err();
  double predicted = 0, actual = 0;
  ASSERT_EQ(std::sscanf(cured.out().c_str(),
                        "the slowest worker as fast as the others: predicted %lfx, was %lfx",
                        &predicted, &actual),
            2)
      << cured.out();
  EXPECT_NEAR(predicted, best["speed_up"].get<double>(), 0.006);
  EXPECT_GT(actual, 1);
  EXPECT_THAT(score("more luck").err(), HasSubstr("predicted changes: "));
}

// An endpoint sends 640 kB per step at 2.5 MB/s: a quarter of a second, against 45 ms of
// computation.
TEST_F(ExplainTest, BlamesTheLink) {
  const Json explained = Explain(
      "link", {"comm.shared_memory=false", "comm.impair.rate_mbit=20", "cluster.workers=2"});
  ExpectChainsAreWhole(explained);
  double links = 0;
  for (const Json& row : explained["blame"]) {
    const std::string who = row["who"];
    if (absl::StartsWith(who, "link ")) links += row["part"].get<double>();
  }
  EXPECT_GT(links, 0.5);
  EXPECT_TRUE(absl::StartsWith(explained["blame"][0]["who"].get<std::string>(), "link "))
      << explained["blame"][0];
  EXPECT_TRUE(explained["what_if"].is_null());
  EXPECT_THAT(explained["no_what_if"].get<std::string>(), HasSubstr("comm.impair"));
}

TEST_F(ExplainTest, ShowsOneStepAndSaysWhatItHasNot) {
  ASSERT_NO_FATAL_FAILURE(Train("untraced"));
  const std::string command =
      absl::StrCat(Path("untraced"), "/config.textproto --set train.steps=40 --trace");
  ExpectErrorLine(Run({"explain", Path("untraced")}), {"trace.json", "tug train " + command});
  ASSERT_NO_FATAL_FAILURE(Train("traced", {}, {"--trace-steps", "4..14"}));
  const Process& step = Run({"explain", Path("traced"), "--step", "7"});
  ASSERT_EQ(step.exit_code(), 0) << step.err();
  EXPECT_THAT(step.out(), HasSubstr("critical path of step 7, "));
  EXPECT_THAT(step.out(), HasSubstr(" backward"));
  ExpectErrorLine(Run({"explain", Path("traced"), "--step", "15"}), {"step 15", "steps 4 to 14"});
  const Process& all = Run({"explain", Path("traced")});
  ASSERT_EQ(all.exit_code(), 0) << all.err();
  EXPECT_THAT(all.out(), HasSubstr("with an exchange through memory at "));
  EXPECT_THAT(all.out(), HasSubstr("| computation twice as fast "));
}

// The first line names a command that records a run with predictions.
TEST_F(ExplainTest, NamesTheCommandThatRecordsWhatItPredictsFrom) {
  const Texts settings = {"sync.policy=SSP", "comm.impair.delay_ms=1"};
  Process& train = StartTraining("stale", settings, {"--trace-steps", "4..14"});
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  const Process& refused = Run({"explain", Path("stale")});
  ASSERT_EQ(refused.exit_code(), 0) << refused.err();
  const std::string line = refused.out().substr(0, refused.out().find('\n'));
  EXPECT_TRUE(absl::StartsWith(line, "no what-if: ")) << line;
  const size_t command = line.find("tug train ");
  ASSERT_NE(command, line.npos) << line;
  const std::string rest = line.substr(command + 4);  // without "tug "
  Process& record =
      StartProgram("/bin/bash", {"-c", absl::StrCat(std::filesystem::absolute(kTug).string(), " ",
                                                    rest, " --run-dir ", Path("fresh"))});
  ASSERT_TRUE(record.WaitForEnd(After(kPatience)));
  EXPECT_EQ(record.exit_code(), 0) << record.err();
  const Process& explained = Run({"explain", Path("fresh")});
  EXPECT_TRUE(absl::StartsWith(explained.out(), "critical path of 20 steps")) << explained.out();
  EXPECT_THAT(explained.out(), HasSubstr("what if: simulated from this trace"));
}

}  // namespace
}  // namespace tug
