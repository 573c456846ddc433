// SPDX-License-Identifier: Apache-2.0
#include "explain/traced_profile.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/job_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/process_name.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

constexpr double kLink = 10e6;  // bytes per second
constexpr double kBytes = 400'000;
constexpr int kSteps = 30;

JobConfig Config(const std::vector<std::string>& more = {}) {
  const absl::StatusOr<JobConfig> job = ParseJobConfig(
      "name: 'job' compute: REPLAY replay { profile: 'vgg16' } optimizer { clip: OFF } "
      "cluster { workers: 3 servers: 1 lanes_per_server: 1 }",
      "test", more);
  EXPECT_TRUE(job.ok()) << job.status();
  return *job;
}

TracedRun RunOf(const std::vector<std::string>& more = {}, double link = 0) {
  return {.folder = "runs/a", .config = Config(more), .link_bytes_per_second = link};
}

struct Span {
  double begin_ms, ms;
};

void Add(Json& trace, const std::string& kind, const std::string& block, uint32_t node, int step,
         const Span& span, Json arguments = Json::object()) {
  arguments["step"] = step;
  trace["traceEvents"].push_back({{"ph", "X"},
                                  {"name", kind + " " + block},
                                  {"cat", kind},
                                  {"pid", node},
                                  {"tid", 1},
                                  {"ts", span.begin_ms * 1e3},
                                  {"dur", span.ms * 1e3},
                                  {"args", std::move(arguments)}});
}

std::string NameOf(uint32_t node) {
  return node == 1 ? ProcessName(kServerRole, 0) : ProcessName(kWorkerRole, node - 2);
}

// Nodes server-0 (1), worker-0 (2), worker-1 (3) and worker-2 (4), each on its own host; two
// blocks. The last worker takes `slowdown` times as long. Messages reach the server one after the
// other, at the rate of its link.
Json Trace(double slowdown, const std::string& host = "host-") {
  Json trace = {{"otherData", {{"blocks", {"a", "b"}}}}, {"traceEvents", Json::array()}};
  for (uint32_t node = 1; node <= 4; ++node) {
    const std::string name =
        absl::StrCat(NameOf(node), " (", host, host == "one" ? 0 : node, ", pid 7)");
    trace["traceEvents"].push_back({{"ph", "M"},
                                    {"name", "process_name"},
                                    {"pid", node},
                                    {"tid", 0},
                                    {"args", {{"name", name}}}});
  }
  double arrived_ms = 0;
  for (int step = 1; step <= kSteps; ++step) {
    for (uint32_t node = 2; node <= 4; ++node) {
      const double times = node == 4 ? slowdown : 1;
      for (const char* block : {"a", "b"}) {
        const Json of_worker = {{"virtual_worker", node - 2}};
        const double ms = times * (*block == 'a' ? 2 : 3);
        Add(trace, "forward", block, node, step, {step * 300.0, ms}, of_worker);
        Add(trace, "backward", block, node, step, {step * 300.0 + 50, 2 * ms}, of_worker);
        const double sent_ms = arrived_ms;
        arrived_ms += kBytes / kLink * 1e3;
        Add(trace, "push", block, node, step, {sent_ms, 100}, of_worker);
        Add(trace, "sum", block, 1, step, {arrived_ms, 0.1},
            {{"virtual_worker", node - 2}, {"worker", NameOf(node)}, {"bytes", kBytes}});
        Add(trace, "pull", block, node, step, {arrived_ms, 50},
            {{"server", NameOf(1)}, {"lane", 0}, {"bytes", kBytes}});
      }
    }
    Add(trace, "optimizer", "a", 1, step, {arrived_ms, 0.4});
  }
  return trace;
}

TEST(ProfileOfTrace, IsWhatWasPlanted) {
  const absl::StatusOr<TracedProfile> traced = ProfileOfTrace(Trace(1), RunOf());
  ASSERT_TRUE(traced.ok()) << traced.status();
  const ReplayProfile& profile = traced->job.replay().resolved_profile();
  ASSERT_EQ(profile.blocks_size(), 2);
  EXPECT_EQ(profile.blocks(0).name(), "a");
  EXPECT_EQ(profile.blocks(0).parameters(), 100'000u);
  EXPECT_NEAR(profile.blocks(0).forward_ms(), 2, 1e-9);
  EXPECT_NEAR(profile.blocks(1).backward_ms(), 6, 1e-9);
  EXPECT_EQ(traced->slowdown, 1);
  EXPECT_NEAR(traced->hosts.link_bytes_per_second, kLink, 0.05 * kLink);
  // 3 pushes of 800,000 bytes take 6 sums of 0.1 ms and an update of 0.4.
  EXPECT_NEAR(traced->hosts.server_bytes_per_second, 2.4e6 / 1e-3, 1e3);
  EXPECT_THAT(traced->notes, IsEmpty());
  EXPECT_TRUE(PredictScheduling(traced->job, traced->hosts).ok());
}

TEST(ProfileOfTrace, SaysThatSpansAreMissing) {
  for (const char* field : {"spans_left_out", "events_dropped", "nodes_missing"}) {
    Json trace = Trace(1);
    trace["otherData"][field] =
        std::string(field) == "nodes_missing" ? Json::array({"worker-1 (host-3, pid 7)"}) : Json(1);
    const absl::StatusOr<TracedProfile> traced = ProfileOfTrace(trace, RunOf());
    ASSERT_TRUE(traced.ok()) << traced.status();
    EXPECT_THAT(traced->notes, ElementsAre(HasSubstr("spans are missing"))) << field;
  }
}

TEST(ProfileOfTrace, KnowsTheStraggler) {
  const absl::StatusOr<TracedProfile> traced = ProfileOfTrace(Trace(2.5), RunOf({}, 5e6));
  ASSERT_TRUE(traced.ok()) << traced.status();
  EXPECT_NEAR(traced->slowdown, 2.5, 1e-9);
  EXPECT_EQ(traced->job.straggler().virtual_worker(), 2u);
  EXPECT_NEAR(traced->job.straggler().slowdown(), 2.5, 1e-9);
  EXPECT_NEAR(traced->job.replay().resolved_profile().blocks(0).forward_ms(), 2, 1e-9)
      << "as the others are";
  EXPECT_EQ(traced->hosts.link_bytes_per_second, 5e6) << "it was said";
}

std::string Error(const Json& trace, const std::vector<std::string>& more) {
  return std::string(ProfileOfTrace(trace, RunOf(more)).status().message());
}

TEST(ProfileOfTrace, ModelsTheMemoryOfASingleHost) {
  const absl::StatusOr<TracedProfile> traced = ProfileOfTrace(Trace(1, "one"), RunOf());
  ASSERT_TRUE(traced.ok()) << traced.status();
  EXPECT_TRUE(traced->in_memory);
  EXPECT_NEAR(traced->hosts.link_bytes_per_second, kLink, 0.05 * kLink);
  EXPECT_EQ(traced->hosts.unevenness, 1);
  EXPECT_NEAR(traced->own_link_bytes_per_second, 119.5e6, 1e5) << "1gbit";
  EXPECT_THAT(traced->notes, ElementsAre(HasSubstr("links between such hosts carry 119.6 MB/s")));
  EXPECT_EQ(ProfileOfTrace(Trace(1, "one"), RunOf({}, 5e6))->own_link_bytes_per_second, 5e6);
  const absl::StatusOr<TracedProfile> sockets =
      ProfileOfTrace(Trace(1, "one"), RunOf({"comm.shared_memory=false"}));
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  EXPECT_FALSE(sockets->in_memory);
  EXPECT_GT(sockets->hosts.unevenness, 1);
}

TEST(ProfileOfTrace, RefusesWhatIsNotSimulatedWithTheCommandThatRecordsAnother) {
  EXPECT_EQ(
      Error(Trace(1, "one"), {"train.steps=16", "sync.policy=ASP", "comm.impair.loss=0.1"}),
      "no what-if: the simulator does not model sync.policy other than BSP, comm.impair (give "
      "hosts links instead: deploy/testbed); this command records a run without: tug train "
      "runs/a/config.textproto --set sync.policy=BSP --set 'comm.impair={}' --set "
      "train.steps=40 --trace");
  EXPECT_THAT(Error(Trace(1), {"sync.replicas=2", "cluster.servers=2"}),
              HasSubstr("tug launch runs/a/config.textproto --hosts HOSTS --set sync.replicas=1"));
  Json empty = Trace(1);
  empty["traceEvents"] = Json::array();
  EXPECT_THAT(Error(empty, {}), AllOf(HasSubstr("block a; this command"), HasSubstr("--trace")));
}

// The server's host has a worker, too.
TEST(ProfileOfTrace, RefusesAnExchangeOfBothKinds) {
  Json trace = Trace(1);
  trace["traceEvents"][1]["args"]["name"] = NameOf(2) + " (host-1, pid 7)";
  EXPECT_THAT(Error(trace, {}), AllOf(HasSubstr("partly through memory"),
                                      HasSubstr("--set comm.shared_memory=false")));
  EXPECT_EQ(Error(trace, {"comm.shared_memory=false"}), "");
}

TEST(ProfileOfTrace, NeedsTheRateOfALinkThatIsNeverFull) {
  Json trace = Trace(1);
  for (Json& event : trace["traceEvents"]) {
    if (event["args"].contains("bytes")) event["args"]["bytes"] = 10;
  }
  EXPECT_THAT(Error(trace, {}), HasSubstr("tug explain runs/a --link 1gbit"));
}

TEST(ProfileOfTrace, RefusesASimulationOfHours) {
  JobConfig large = Config({"comm.segment_elements=1024", "comm.partition_bytes=4096"});
  ReplayProfile& profile = *large.mutable_replay()->mutable_resolved_profile();
  for (const char* name : {"a", "b"}) {
    ReplayBlock& block = *profile.add_blocks();
    block.set_name(name);
    block.set_parameters(200'000'000);
  }
  const TracedRun run{.folder = "runs/a", .config = large};
  EXPECT_THAT(std::string(ProfileOfTrace(Trace(1), run).status().message()),
              AllOf(HasSubstr("take too long"), HasSubstr("--set comm.partition_bytes=16384")));
}

}  // namespace
}  // namespace tug
