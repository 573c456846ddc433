// SPDX-License-Identifier: Apache-2.0
// A job of real processes monitored by a real Prometheus, which finds them by the coordinator's
// address alone, with the example configuration deploy/prometheus.yml.

#include <signal.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kPrometheus[] = "/usr/bin/prometheus";
constexpr char kPromtool[] = "/usr/bin/promtool";

// Body of a successful reply; empty otherwise.
std::string Get(const std::string& address, const std::string& path) {
  httplib::Client client(absl::StrCat("http://", address));
  client.set_connection_timeout(5);
  const httplib::Result result = client.Get(path.c_str());
  return result && result->status == 200 ? result->body : "";
}

class MetricsTest : public DaemonTest {
 protected:
  // Metrics addresses listed by the coordinator, by "coordinator", "server-0", ...
  std::map<std::string, std::string> Targets() const {
    const Json json = Json::parse(Get(coordinator_metrics_, "/targets"), nullptr, false);
    std::map<std::string, std::string> targets;
    if (!json.is_array()) return targets;
    for (const Json& target : json) {
      EXPECT_EQ(target["labels"]["job"], "tiny");
      targets[target["labels"]["process"]] = target["targets"][0];
    }
    return targets;
  }

  void StartWatchedJob(const Texts& settings = {}) {
    ASSERT_NO_FATAL_FAILURE(StartJob(Endless() + Texts{"watch.metrics=true"} + settings));
    const std::string path = Path("run/metrics_address");
    coordinator_metrics_ = std::string(absl::StripAsciiWhitespace(ReadText(path)));
    ASSERT_FALSE(coordinator_metrics_.empty()) << coordinator().err();
    ASSERT_TRUE(
        coordinator().WaitUntil([this] { return Targets().size() == 5; }, After(kPatience)));
  }

  void Stop() {
    Run({"stop", "--coordinator", address()});
    EXPECT_TRUE(coordinator().WaitForEnd(After(kPatience)));
    EXPECT_FALSE(std::filesystem::exists(Path("run/metrics_address")));
  }

  std::string coordinator_metrics_;
};

TEST_F(MetricsTest, EveryProcessAnswersAndIsListed) {
  ASSERT_NO_FATAL_FAILURE(StartWatchedJob());
  const std::map<std::string, std::string> targets = Targets();
  EXPECT_THAT(targets, UnorderedElementsAre(Pair("coordinator", coordinator_metrics_),
                                            Pair("server-0", HasSubstr("127.0.0.1:")),
                                            Pair("server-1", HasSubstr("127.0.0.1:")),
                                            Pair("worker-0", HasSubstr("127.0.0.1:")),
                                            Pair("worker-1", HasSubstr("127.0.0.1:"))));
  const std::string status = Run({"status", "--coordinator", address()}).out();
  for (const auto& [name, address] : targets) {
    SCOPED_TRACE(name);
    const std::string text = Get(address, "/metrics");
    EXPECT_THAT(text, HasSubstr("process_cpu_seconds_total{job=\"tiny\",role=\""));
    const bool coordinates = name[0] == 'c';
    const char* const own = coordinates      ? "tug_members{job=\"tiny\",role=\"coordinator\","
                            : name[0] == 's' ? "tug_lane_sum_seconds_total{job=\"tiny\","
                                             : "tug_step_seconds_bucket{job=\"tiny\",";
    EXPECT_THAT(text, HasSubstr(own));
    if (!coordinates) {
      EXPECT_THAT(status, HasSubstr(absl::StrCat("metrics at ", address)));
    }
  }
  Stop();
}

TEST_F(MetricsTest, NoMetricsPortIsOpenUnlessRequested) {
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless()));
  EXPECT_FALSE(std::filesystem::exists(Path("run/metrics_address")));
  Stop();
}

// Several processes of a host request the same port: one gets it, the others use another.
TEST_F(MetricsTest, APortThatIsTakenIsNoError) {
  httplib::Server other;  // takes the port first
  const int port = other.bind_to_any_port("127.0.0.1");
  ASSERT_NO_FATAL_FAILURE(StartWatchedJob({absl::StrCat("watch.metrics_port=", port)}));
  std::set<std::string> addresses;
  for (const auto& [name, address] : Targets()) addresses.insert(address);
  EXPECT_EQ(addresses.size(), 5u);
  Stop();
}

class PrometheusTest : public MetricsTest {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kPrometheus)) {
      GTEST_SKIP() << "skipped: no prometheus; deploy/setup --tests installs it";
    }
  }

  // Uses the example's configuration, except for addresses and intervals.
  void StartPrometheus() {
    Write("prometheus.yml",
          absl::StrReplaceAll(ReadText("deploy/prometheus.yml"),
                              {{"127.0.0.1:9464", coordinator_metrics_},
                               {"scrape_interval: 1s", "scrape_interval: 200ms"},
                               {"refresh_interval: 5s", "refresh_interval: 1s"}}));
    prometheus_ =
        &StartProgram(kPrometheus, {absl::StrCat("--config.file=", Path("prometheus.yml")),
                                    absl::StrCat("--storage.tsdb.path=", Path("prometheus")),
                                    "--web.listen-address=127.0.0.1:0"});
    const auto listens = [this] {
      for (const absl::string_view line : absl::StrSplit(prometheus_->err(), '\n')) {
        const std::pair<std::string, std::string> parts =
            absl::StrSplit(line, absl::MaxSplits("msg=\"Listening on\" address=", 1));
        if (!parts.second.empty()) api_ = parts.second;
      }
      return !api_.empty() && !Get(api_, "/-/ready").empty();
    };
    ASSERT_TRUE(prometheus_->WaitUntil(listens, After(kPatience))) << prometheus_->err();
  }

  void EndPrometheus() {
    prometheus_->Signal(SIGTERM);
    EXPECT_TRUE(prometheus_->WaitForEnd(After(kPatience)));
  }

  // Result of a query: values by "role rank".
  std::map<std::string, double> Query(const std::string& query) const {
    httplib::Params parameters = {{"query", query}};
    const std::string path = httplib::append_query_params("/api/v1/query", parameters);
    const Json json = Json::parse(Get(api_, path), nullptr, false);
    std::map<std::string, double> values;
    if (!json.is_object() || json["status"] != "success") return values;
    for (const Json& sample : json["data"]["result"]) {
      const Json& labels = sample["metric"];
      EXPECT_EQ(labels.value("job", ""), "tiny") << labels;
      EXPECT_FALSE(labels.contains("exported_job")) << labels;
      const std::string name = labels.value("process", "?");
      values[name] = std::stod(sample["value"][1].get<std::string>());
    }
    return values;
  }

  void WaitForQuery(const std::function<bool()>& holds, const std::string& what) {
    EXPECT_TRUE(prometheus_->WaitUntil(holds, After(kPatience))) << what << prometheus_->err();
  }

  void ExpectGrowth(const std::string& metric, size_t processes) {
    std::map<std::string, double> before;
    WaitForQuery(
        [&] {
          before = Query(metric);
          return before.size() == processes;
        },
        metric);
    WaitForQuery(
        [&] {
          const std::map<std::string, double> now = Query(metric);
          bool all = now.size() == processes;
          for (const auto& [name, value] : now) all = all && value > before[name];
          return all;
        },
        absl::StrCat(metric, " does not grow"));
  }

  Process* prometheus_ = nullptr;
  std::string api_;
};

TEST_F(PrometheusTest, FindsReadsAndLabelsEveryProcess) {
  ASSERT_NO_FATAL_FAILURE(StartWatchedJob());
  ASSERT_NO_FATAL_FAILURE(StartPrometheus());
  WaitForQuery([this] { return Query("up == 1").size() == 5; }, "not all are up");
  std::set<std::string> expected;
  for (const auto& [name, address] : Targets()) expected.insert(name);
  std::set<std::string> up;
  for (const auto& [name, value] : Query("up == 1")) up.insert(name);
  EXPECT_EQ(up, expected);

  ExpectGrowth("tug_push_bytes_total", 2);
  ExpectGrowth("tug_pull_bytes_total", 2);
  ExpectGrowth("tug_step_seconds_count", 2);
  ExpectGrowth("sum by (job, process) (tug_updates_total)", 2);
  ExpectGrowth("sum by (job, process) (tug_lane_optimizer_seconds_total)", 2);
  ExpectGrowth("tug_tokens_total", 1);
  ExpectGrowth("tug_checkpoints_total", 1);
  ExpectGrowth("process_cpu_seconds_total", 5);
  EndPrometheus();
  Stop();
}

// "No lint": promtool prints nothing and exits with 0.
TEST_F(PrometheusTest, FindsNothingToMendInWhatIsAnswered) {
  ASSERT_NO_FATAL_FAILURE(StartWatchedJob());
  for (const auto& [name, address] : Targets()) {
    SCOPED_TRACE(name);
    Write("metrics.txt", Get(address, "/metrics"));
    Process& promtool = StartProgram(
        "/bin/sh", {"-c", absl::StrCat(kPromtool, " check metrics < ", Path("metrics.txt"))});
    ASSERT_TRUE(promtool.WaitForEnd(After(kPatience)));
    EXPECT_EQ(promtool.exit_code(), 0) << promtool.err();
    EXPECT_EQ(promtool.out() + promtool.err(), "");
  }
  Stop();
}

}  // namespace
}  // namespace tug
