// SPDX-License-Identifier: Apache-2.0
#include "coordinator/trace/trace_file.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "coordinator/trace/trace_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using Json = nlohmann::json;

constexpr int64_t kStart = 1'700'000'000'000'000'000;
constexpr uint32_t kWorker = 2, kServer = 1;

TraceEvent Span(TraceKind kind, int64_t begin_us, int64_t end_us) {
  return {.kind = kind,
          .block = 1,
          .clock = 9,
          .begin_ns = kStart + 1000 * begin_us,
          .end_ns = kStart + 1000 * end_us};
}
TraceEvent Partition(TraceKind kind, uint32_t segment, int64_t begin_us, int64_t end_us) {
  TraceEvent event = Span(kind, begin_us, end_us);
  event.first_segment = segment;
  event.segment_count = 1;
  event.bytes = 64;
  event.peer = kind == TraceKind::kSum || kind == TraceKind::kServe ? kWorker : kServer << 8;
  return event;
}

// A worker pushes two partitions of a block concurrently, and pulls them; a server sums, updates
// and answers.
JobTrace TwoPartitions() {
  JobTrace trace;
  trace.range = {9, 10};
  trace.block_names = {"embedding", "h.\"0\"\n"};
  trace.nodes.resize(2);
  TracedNode& server = trace.nodes[0];
  server.node_id = kServer;
  server.kind = SERVER;
  server.name = "server-0";
  server.place = "a\\b, pid 7";
  server.clock_error_ns = 1500;
  server.tracks = {
      {"lane 0",
       3,
       {Partition(TraceKind::kSum, 0, 30, 40), Partition(TraceKind::kOptimizer, 0, 40, 50),
        Partition(TraceKind::kServe, 0, 50, 52), Partition(TraceKind::kSum, 1, 60, 70),
        Partition(TraceKind::kOptimizer, 1, 70, 80), Partition(TraceKind::kServe, 1, 80, 82)}}};
  TracedNode& worker = trace.nodes[1];
  worker.node_id = kWorker;
  worker.kind = WORKER;
  worker.name = "worker-0";
  worker.tracks = {
      {"compute", 0, {Span(TraceKind::kBackward, 0, 10), Span(TraceKind::kStep, 0, 90)}},
      {"exchange",
       0,
       {Partition(TraceKind::kQueue, 0, 10, 11), Partition(TraceKind::kQueue, 1, 10, 20),
        Partition(TraceKind::kPush, 0, 11, 45), Partition(TraceKind::kPush, 1, 20, 75),
        Partition(TraceKind::kPull, 0, 12, 60), Partition(TraceKind::kDecode, 0, 60, 61),
        Partition(TraceKind::kPull, 1, 12, 88), Partition(TraceKind::kDecode, 1, 88, 90)}}};
  return trace;
}

Json Written(const JobTrace& trace) {
  const std::string path = ::testing::TempDir() + "/trace.json";
  const absl::Status written =
      WriteTraceFile(path, trace, FiguresOf(trace), CriticalPathsOf(trace));
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  std::ifstream file(path);
  return Json::parse(file);
}

std::vector<Json> Of(const Json& trace, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

TEST(TraceFile, NamesNodesTracksAndSpans) {
  const Json trace = Written(TwoPartitions());
  std::map<uint32_t, std::string> nodes;
  std::map<uint32_t, std::set<std::string>> tracks;
  for (const Json& event : Of(trace, "M")) {
    if (event["name"] == "process_name")
      nodes[event["pid"].get<uint32_t>()] = event["args"]["name"].get<std::string>();
    if (event["name"] == "thread_name")
      tracks[event["pid"].get<uint32_t>()].insert(event["args"]["name"].get<std::string>());
  }
  EXPECT_EQ(nodes[kServer], "server-0 (a\\b, pid 7)");
  EXPECT_EQ(tracks[kServer], (std::set<std::string>{"lane 0"}));
  EXPECT_EQ(tracks[kWorker],
            (std::set<std::string>{"compute", "exchange", "queue", "push", "pull"}));
  std::map<std::string, int> names;
  for (const Json& event : Of(trace, "X")) ++names[event["name"].get<std::string>()];
  EXPECT_EQ(names["step 10"], 1);
  EXPECT_EQ(names["backward h.\"0\"\n"], 1);
  EXPECT_EQ(names["push h.\"0\"\n"], 2);
  EXPECT_EQ(names["queue h.\"0\"\n"], 1) << "one for the block";
}

TEST(TraceFile, SpansAreWhereTheyWereOnOneClock) {
  for (const Json& event : Of(Written(TwoPartitions()), "X")) {
    if (event["cat"] == "push" && event["args"]["first_segment"] == 1) {
      EXPECT_DOUBLE_EQ(event["ts"], 20);
      EXPECT_DOUBLE_EQ(event["dur"], 55);
      EXPECT_EQ(event["args"]["bytes"], 64);
      EXPECT_EQ(event["args"]["step"], 10);
    }
    if (event["cat"] == "queue") {
      EXPECT_DOUBLE_EQ(event["ts"], 10);
      EXPECT_DOUBLE_EQ(event["dur"], 10);
      EXPECT_EQ(event["args"]["partitions"], 2);
    }
    if (event["cat"] == "pull" && event["args"]["first_segment"] == 0) {
      EXPECT_DOUBLE_EQ(event["ts"], 50) << "when its lane began to answer";
      EXPECT_DOUBLE_EQ(event["dur"], 10);
      EXPECT_DOUBLE_EQ(event["args"]["waited_us"], 38);
    }
  }
}

TEST(TraceFile, AnAnswerNamesTheWorkerOrTheServerThatPulled) {
  JobTrace whole = TwoPartitions();
  whole.nodes[0].tracks[0].events.back().peer = kServer;
  std::vector<Json> answers;
  for (const Json& event : Of(Written(whole), "X")) {
    if (event["cat"] == "serve") answers.push_back(event["args"]);
  }
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0]["worker"], "worker-0");
  EXPECT_FALSE(answers[0].contains("server"));
  EXPECT_EQ(answers[1]["server"], "server-0");
  EXPECT_FALSE(answers[1].contains("worker"));
}

TEST(TraceFile, ArrowsGoFromPushOverSumAndOptimizerToPull) {
  const Json trace = Written(TwoPartitions());
  std::map<uint64_t, std::vector<Json>> arrows;
  for (const Json& event : trace["traceEvents"]) {
    if (event.contains("id")) arrows[event["id"].get<uint64_t>()].push_back(event);
  }
  ASSERT_EQ(arrows.size(), 2u);
  for (const auto& [id, points] : arrows) {
    ASSERT_EQ(points.size(), 4u);
    EXPECT_EQ(points[0]["ph"], "s");
    EXPECT_EQ(points[1]["ph"], "t");
    EXPECT_EQ(points[2]["ph"], "t");
    EXPECT_EQ(points[3]["ph"], "f");
    EXPECT_EQ(points[0]["pid"], kWorker);
    EXPECT_EQ(points[1]["pid"], kServer);
    EXPECT_EQ(points[3]["pid"], kWorker);
    for (size_t i = 1; i < points.size(); ++i) {
      EXPECT_LE(points[i - 1]["ts"].get<double>(), points[i]["ts"].get<double>());
    }
  }
}

TEST(TraceFile, FiguresAndTroublesStandBesideTheEvents) {
  JobTrace whole = TwoPartitions();
  whole.silent = {"worker-1 (host, pid 9)"};
  const Json trace = Written(whole);
  EXPECT_EQ(trace["otherData"]["first_step"], 10);
  EXPECT_EQ(trace["otherData"]["last_step"], 10);
  EXPECT_EQ(trace["otherData"]["events_dropped"], 3);
  EXPECT_EQ(trace["otherData"]["nodes_missing"][0], "worker-1 (host, pid 9)");
  EXPECT_DOUBLE_EQ(trace["otherData"]["clock_error_us"]["server-0"], 1.5);
  ASSERT_EQ(trace["steps"].size(), 1u);
  EXPECT_EQ(trace["steps"][0]["node"], "worker-0");
  EXPECT_DOUBLE_EQ(trace["steps"][0]["queue_seconds"]["h.\"0\"\n"], 10e-6);
  EXPECT_EQ(trace["steps"][0]["pushed_bytes"], 128);
}

TEST(TraceFile, AnEmptyTraceIsValid) {
  const Json trace = Written(JobTrace());
  EXPECT_TRUE(trace["traceEvents"].empty());
}

TEST(TraceFile, EscapesWhatJsonDoesNotTake) {
  EXPECT_EQ(JsonString("plain"), "\"plain\"");
  EXPECT_EQ(JsonString("a\"b\\c\n\x01"), R"("a\"b\\c\n\u0001")");
  EXPECT_EQ(JsonString("caf\xc3\xa9"), "\"caf\xc3\xa9\"");
  EXPECT_EQ(JsonString("\xff\xc3"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  EXPECT_FALSE(Json::parse(JsonString(all), nullptr, /*allow_exceptions=*/false).is_discarded());
}

TEST(TraceFile, NamesWhatCannotBeWritten) {
  const absl::Status written = WriteTraceFile("/nowhere/trace.json", JobTrace(), {}, {});
  EXPECT_FALSE(written.ok());
  EXPECT_NE(written.ToString().find("/nowhere/trace.json"), std::string::npos) << written;
}

// Spans of a row do not overlap, however many were open concurrently.
TEST(TraceLayout, GivesEachOpenSpanARowAndBoundsThem) {
  JobTrace trace = TwoPartitions();
  TracedTrack& exchange = trace.nodes[1].tracks[1];
  for (uint32_t i = 2; i < 2 + kMaxTraceRows; ++i) {
    exchange.events.push_back(Partition(TraceKind::kPush, i, 15, 200));
  }
  const TraceLayout layout = LayOut(trace);
  EXPECT_EQ(layout.left_out, 2u) << "two rows have been taken";
  std::map<std::pair<uint32_t, uint32_t>, int64_t> ends;
  for (const DrawnSpan& span : layout.spans) {
    if (span.event.kind != TraceKind::kPush) continue;
    int64_t& end_ns = ends[{span.node_id, span.row}];
    EXPECT_GE(span.event.begin_ns, end_ns);
    end_ns = span.event.end_ns;
  }
  EXPECT_EQ(ends.size(), kMaxTraceRows);
}

TEST(TraceLayout, ArrowOmitsSpansWhoseClocksDisagree) {
  JobTrace trace = TwoPartitions();
  for (TraceEvent& event : trace.nodes[0].tracks[0].events) {
    event.begin_ns -= 1'000'000;
    event.end_ns -= 1'000'000;
  }
  int64_t last_ns = 0;
  uint64_t last_arrow = 0;
  size_t points = 0;
  for (const ArrowPoint& point : LayOut(trace).arrows) {
    if (point.arrow == last_arrow) {
      EXPECT_GE(point.at_ns, last_ns);
    }
    last_arrow = point.arrow;
    last_ns = point.at_ns;
    ++points;
  }
  EXPECT_EQ(points, 4u) << "two arrows, of two points each";
}

}  // namespace
}  // namespace tug
