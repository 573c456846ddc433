// SPDX-License-Identifier: Apache-2.0
// `tug train --trace` with real processes: two workers, two servers. The timeline is complete, its
// clocks agree, its figures add up, and tracing changes no bit of the result.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

using Track = std::pair<uint32_t, uint32_t>;  // pid, tid

struct Span {
  std::string kind;
  double begin = 0;  // microseconds
  double end = 0;
};

class TraceTest : public TugTest {
 protected:
  // The trace of a run, which must exist.
  Json TraceOf(const std::string& run) {
    std::ifstream file(Path(run) + "/trace.json");
    Json trace = Json::parse(file, nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(trace.is_object()) << "no trace of " << run;
    return trace.is_object() ? trace : Json({{"traceEvents", Json::array()}, {"steps", {}}});
  }

  // Spans by track, in file order.
  static std::map<Track, std::vector<Span>> SpansOf(const Json& trace) {
    std::map<Track, std::vector<Span>> spans;
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] != "X") continue;
      const double begin = event["ts"], duration = event["dur"];
      EXPECT_GE(duration, 0);
      spans[{event["pid"].get<uint32_t>(), event["tid"].get<uint32_t>()}].push_back(
          {event["cat"].get<std::string>(), begin, begin + duration});
    }
    return spans;
  }

  // Upper bound on the difference of two nodes' clocks.
  static double ClockErrorOf(const Json& trace) {
    double most = 0;
    for (const Json& error : trace["otherData"]["clock_error_us"]) {
      most = std::max(most, error.get<double>());
    }
    return 2 * most;
  }

  static void ExpectEveryKindOfSpan(const Json& trace) {
    std::map<uint32_t, std::set<std::string>> kinds;
    std::map<uint32_t, std::string> names;
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] == "X")
        kinds[event["pid"].get<uint32_t>()].insert(event["cat"].get<std::string>());
      if (event["name"] == "process_name")
        names[event["pid"].get<uint32_t>()] = event["args"]["name"].get<std::string>();
    }
    int workers = 0, servers = 0;
    for (const auto& [pid, name] : names) {
      SCOPED_TRACE(name);
      if (name == "critical path") {
        EXPECT_THAT(kinds[pid], ElementsAre("critical"));
      } else if (name.rfind("worker-", 0) == 0) {
        ++workers;
        EXPECT_THAT(kinds[pid], IsSupersetOf({"step", "forward", "backward", "evaluate", "wait",
                                              "queue", "encode", "push", "pull", "decode"}));
      } else {
        ++servers;
        EXPECT_THAT(kinds[pid], IsSupersetOf({"sum", "optimizer", "serve"}));
      }
    }
    EXPECT_EQ(workers, 2);
    EXPECT_EQ(servers, 2);
  }

  static void ExpectSpansNest(const Json& trace) {
    constexpr double kRounding = 0.002;  // microseconds: times are written in whole ns
    for (const auto& [track, spans] : SpansOf(trace)) {
      std::vector<Span> open;
      for (const Span& span : spans) {
        while (!open.empty() && open.back().end <= span.begin + kRounding) open.pop_back();
        if (!open.empty()) {
          EXPECT_GE(span.begin, open.back().begin - kRounding);
          EXPECT_LE(span.end, open.back().end + kRounding)
              << span.kind << " and " << open.back().kind << " of node " << track.first;
        }
        open.push_back(span);
      }
    }
  }

  // Every push has an arrow. (The arrow skips a server if clocks disagree about the order.)
  static void ExpectArrowsFollowTheGradient(const Json& trace) {
    std::map<uint64_t, std::vector<Json>> arrows;
    int pushes = 0;
    for (const Json& event : trace["traceEvents"]) {
      if (event.contains("id")) arrows[event["id"].get<uint64_t>()].push_back(event);
      pushes += event["ph"] == "X" && event["cat"] == "push";
    }
    EXPECT_EQ(static_cast<int>(arrows.size()), pushes);
    EXPECT_GT(pushes, 0);
    for (const auto& [id, points] : arrows) {
      ASSERT_GE(points.size(), 2u);
      EXPECT_EQ(points.front()["ph"], "s");
      EXPECT_EQ(points.back()["ph"], "f");
      EXPECT_EQ(points.front()["pid"], points.back()["pid"]);
      EXPECT_LE(points.front()["ts"].get<double>(), points.back()["ts"].get<double>());
    }
  }

  // A push ends when its reply arrives, after the sum has ended: their times may be reversed by at
  // most the clock error.
  static void ExpectSumsWithinPushes(const Json& trace) {
    const double error = ClockErrorOf(trace);
    using Key = std::vector<int64_t>;  // first segment, step, virtual worker
    std::map<std::tuple<std::string, std::string, Key>, Span> pushes;  // by worker and block
    int compared = 0;
    std::map<uint32_t, std::string> workers;  // by process id of the trace
    for (const Json& event : trace["traceEvents"]) {
      if (event["name"] != "process_name") continue;
      const auto name = event["args"]["name"].get<std::string>();
      workers[event["pid"].get<uint32_t>()] = name.substr(0, name.find(' '));
    }
    const auto key = [](const Json& event, const std::string& worker) {
      const Json& args = event["args"];
      const auto name = event["name"].get<std::string>();
      return std::tuple(worker, name.substr(name.find(' ')),
                        Key{args["first_segment"].get<int64_t>(), args["step"].get<int64_t>(),
                            args["virtual_worker"].get<int64_t>()});
    };
    for (const bool sums : {false, true}) {
      for (const Json& event : trace["traceEvents"]) {
        if (event["ph"] != "X" || event["cat"] != (sums ? "sum" : "push")) continue;
        const double begin = event["ts"], end = begin + event["dur"].get<double>();
        if (!sums) {
          pushes[key(event, workers[event["pid"].get<uint32_t>()])] = {"push", begin, end};
        } else if (const auto push = pushes.find(key(event, event["args"]["worker"]));
                   push != pushes.end()) {
          EXPECT_GE(begin, push->second.begin - error);
          EXPECT_LE(end, push->second.end + error);
          ++compared;
        }
      }
    }
    EXPECT_GT(compared, 0);
  }

  static void ExpectFiguresAddUp(const Json& trace, int first, int last) {
    std::map<std::string, std::set<int>> steps;
    // Summed over the steps: a step of less than a millisecond whose weights came early can end
    // before the exchange's thread handles its pushes.
    std::map<std::string, double> communication;
    for (const Json& step : trace["steps"]) {
      steps[step["node"].get<std::string>()].insert(step["step"].get<int>());
      const double seconds = step["seconds"], compute = step["compute_seconds"];
      const double exposed = step["exposed_seconds"];
      EXPECT_GT(compute, 0);
      EXPECT_GE(exposed, 0);
      EXPECT_LE(compute + exposed, seconds + 1e-6);
      EXPECT_LE(step["communication_seconds"].get<double>(), seconds + 1e-6);
      communication[step["node"].get<std::string>()] += step["communication_seconds"].get<double>();
      EXPECT_GE(step["overlap"].get<double>(), 0);
      EXPECT_LE(step["overlap"].get<double>(), 1);
      EXPECT_GT(step["pushed_bytes"].get<uint64_t>(), 0u);
      EXPECT_GT(step["pulled_bytes"].get<uint64_t>(), 0u);
      EXPECT_EQ(step["queue_seconds"].size(), 4u) << "embedding, two layers, head";
    }
    EXPECT_EQ(steps.size(), 2u) << "workers";
    for (const auto& [node, numbers] : steps) {
      EXPECT_GT(communication[node], 0) << node;
      EXPECT_EQ(static_cast<int>(numbers.size()), last - first + 1);
      EXPECT_EQ(*numbers.begin(), first);
      EXPECT_EQ(*numbers.rbegin(), last);
    }
  }

  void ExpectSameBits(const std::string& one, const std::string& other) {
    ExpectSameState(Path(one), Path(other));
    ExpectSameLosses(*ReadLosses(Path(one)), *ReadLosses(Path(other)));
  }
};

TEST_F(TraceTest, ShowsAllNodesOnOneClockAndChangesNoBit) {
  for (const std::string shared : {"true", "false"}) {
    SCOPED_TRACE("shared memory: " + shared);
    // Pushes are encoded; an evaluation falls into the traced steps.
    const Texts settings = {"comm.shared_memory=" + shared, "comm.push_codec.bf16={}"};
    ASSERT_NO_FATAL_FAILURE(Train("plain-" + shared, settings));
    EXPECT_FALSE(std::filesystem::exists(Path("plain-" + shared) + "/trace.json"));
    Process& process = StartTraining("traced-" + shared, settings, {"--trace"});
    ASSERT_TRUE(process.WaitForEnd(After(kPatience)));
    ASSERT_EQ(process.exit_code(), 0) << process.err();
    EXPECT_THAT(process.err(), HasSubstr("trace.json (steps 10 to 29): compute "));
    EXPECT_THAT(process.err(), HasSubstr("ui.perfetto.dev"));
    ExpectSameBits("plain-" + shared, "traced-" + shared);

    const Json trace = TraceOf("traced-" + shared);
    EXPECT_EQ(trace["otherData"]["events_dropped"], 0);
    EXPECT_EQ(trace["otherData"]["spans_left_out"], 0);
    EXPECT_TRUE(trace["otherData"]["nodes_missing"].empty());
    ExpectEveryKindOfSpan(trace);
    ExpectSpansNest(trace);
    ExpectArrowsFollowTheGradient(trace);
    ExpectSumsWithinPushes(trace);
    ExpectFiguresAddUp(trace, 10, 29);
    EXPECT_LT(std::filesystem::file_size(Path("traced-" + shared) + "/trace.json"), 4u << 20);
  }
}

// No step follows the last one: its events are collected before the job ends.
TEST_F(TraceTest, HasTheLastStepOfAJobAndThatOfAResumedOne) {
  const Texts settings = {"cluster.virtual_workers=4"};
  ASSERT_NO_FATAL_FAILURE(Train("run", settings, {"--trace-steps", "49..50"}));
  ExpectFiguresAddUp(TraceOf("run"), 49, 50);
  ExpectSpansNest(TraceOf("run"));
  const Process& resumed =
      Run(Texts{"train", job(), "--resume", Path("run"), "--trace-steps", "1..3"} +
          Set(settings + Texts{"train.steps=60"}));
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err();
  EXPECT_THAT(resumed.err(), HasSubstr("(steps 51 to 53)"));
  ExpectFiguresAddUp(TraceOf("run"), 51, 53);
}

TEST_F(TraceTest, SaysWhereThereIsNothingToRecord) {
  ExpectErrorLine(Run({"train", job(), "--trace-steps", "51..52"}),
                  {"trace.first_step = 51", "train.steps = 50"});
  ExpectErrorLine(Run({"train", job(), "--trace-steps", "5"}),
                  {"'5' is not a range of steps", "10..29"});
  ASSERT_NO_FATAL_FAILURE(Train("run"));
  const Process& resumed =
      Run(Texts{"train", job(), "--resume", Path("run"), "--trace"} + Set({"train.steps=55"}));
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err();
  EXPECT_THAT(resumed.err(), HasSubstr("no trace: the run ended before step 60"));
}

}  // namespace
}  // namespace tug
