// SPDX-License-Identifier: Apache-2.0
// Tests of the metric tables: their names, their text format, the document that lists them
// (docs/metrics.md) and the dashboard that shows them.

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "metrics/coordinator_metrics.h"
#include "metrics/metrics_endpoint.h"
#include "metrics/process_metrics.h"
#include "metrics/server_metrics.h"
#include "metrics/step_totals.h"
#include "metrics/worker_metrics.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A row without its read function, and the roles of the processes that export it.
struct Listed {
  MetricType type;
  std::string unit;
  std::string label;
  std::string help;
  std::vector<std::string> roles;
};
using Metrics = std::map<std::string, Listed>;

template <typename Figures>
void List(std::span<const MetricRow<Figures>> rows, const std::string& role, Metrics& metrics) {
  std::set<std::string> names;
  for (const MetricRow<Figures>& row : rows) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " is twice in a table";
    const auto [listed, fresh] =
        metrics.try_emplace(row.name, Listed{row.type, row.unit, row.label, row.help, {}});
    listed->second.roles.push_back(role);
    EXPECT_EQ(listed->second.type, row.type) << row.name;
    EXPECT_EQ(listed->second.unit, row.unit) << row.name;
    EXPECT_EQ(listed->second.label, row.label) << row.name;
    EXPECT_EQ(listed->second.help, row.help) << row.name;
  }
}

Metrics AllMetrics() {
  Metrics metrics;
  List(CoordinatorMetrics(), "coordinator", metrics);
  List(ServerMetrics(), "server", metrics);
  List(WorkerMetrics(), "worker", metrics);
  List(ProcessMetrics(), "all", metrics);
  return metrics;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

TEST(MetricTables, NameMetricsAsPrometheusDoes) {
  for (const auto& [name, metric] : AllMetrics()) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(std::regex_match(name, std::regex("(tug|process)_[a-z_]+")));
    EXPECT_EQ(absl::EndsWith(name, "_total"), metric.type == MetricType::kCounter);
    const std::string end = metric.type == MetricType::kCounter ? "_total" : "";
    for (const char* unit : {"seconds", "bytes"}) {
      if (metric.unit == unit) {
        EXPECT_TRUE(absl::EndsWith(name, absl::StrCat("_", unit, end)));
      }
    }
    EXPECT_THAT(metric.unit, Not(testing::IsEmpty()));
    EXPECT_THAT(metric.help, Not(testing::IsEmpty()));
    EXPECT_THAT(metric.label, testing::AnyOf("", "lane", "kind", "phase", "node"));
  }
}

TEST(MetricTables, AreWhatTheDocumentLists) {
  std::string expected;
  for (const auto& [name, metric] : AllMetrics()) {
    absl::StrAppend(&expected, "| `", name, "` | ", MetricTypeName(metric.type), " | ", metric.unit,
                    " | ", absl::StrJoin(metric.roles, ", "), " | ", metric.label, " | ",
                    metric.help, " |\n");
  }
  std::istringstream document(ReadText("docs/metrics.md"));
  std::string listed;
  for (std::string line; std::getline(document, line);) {
    if (absl::StartsWith(line, "| `tug_") || absl::StartsWith(line, "| `process_")) {
      absl::StrAppend(&listed, line, "\n");
    }
  }
  EXPECT_EQ(listed, expected) << "the table of docs/metrics.md should be:\n" << expected;
}

// Collects every "expr" of a dashboard.
void FindExpressions(const Json& json, std::vector<std::string>& found) {
  if (json.is_object() && json.contains("expr")) found.push_back(json["expr"]);
  if (json.is_structured()) {
    for (const Json& part : json) FindExpressions(part, found);
  }
}

TEST(Dashboard, ShowsOnlyMetricsThatThereAre) {
  const Json dashboard = Json::parse(ReadText("deploy/grafana/tugboat.json"), nullptr, false);
  ASSERT_TRUE(dashboard.is_object()) << "not JSON";
  const Metrics metrics = AllMetrics();
  std::vector<std::string> expressions;
  FindExpressions(dashboard["panels"], expressions);
  EXPECT_GT(expressions.size(), 20u);
  std::set<std::string> shown;
  for (const std::string& expression : expressions) {
    SCOPED_TRACE(expression);
    EXPECT_THAT(expression, AllOf(HasSubstr("job=~\"$job\""), HasSubstr("role=~\"$role\""),
                                  HasSubstr("process=~\"$process\"")));
    const std::regex word("(tug|process)_[a-z_]+");
    for (std::sregex_iterator at(expression.begin(), expression.end(), word), end; at != end;
         ++at) {
      std::string name = at->str();
      for (const char* suffix : {"_bucket", "_sum", "_count"}) {
        const std::string histogram = name.substr(0, name.rfind(suffix));
        const auto found = metrics.find(histogram);
        if (found != metrics.end() && found->second.type == MetricType::kHistogram) {
          name = histogram;
        }
      }
      EXPECT_TRUE(metrics.contains(name)) << "no such metric: " << name;
      shown.insert(name);
    }
  }
  EXPECT_GT(shown.size(), 25u);
}

TEST(Dashboard, HasItsVariables) {
  const Json dashboard = Json::parse(ReadText("deploy/grafana/tugboat.json"), nullptr, false);
  std::vector<std::string> names;
  for (const Json& variable : dashboard["templating"]["list"]) names.push_back(variable["name"]);
  EXPECT_THAT(names, ElementsAre("datasource", "job", "role", "process"));
  std::set<int> ids;
  for (const Json& panel : dashboard["panels"]) {
    EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second) << "two panels are " << panel["id"];
  }
}

TEST(MetricsText, HasLabelsAndOneLineAValue) {
  WorkerFigures figures{.ready = true, .pushed_bytes = 12345, .weight_bytes = 7};
  MetricsText text({.job = "a \"job\"", .role = "worker", .process = "worker-3"});
  text.Add(WorkerMetrics(), figures);
  const std::string labels = R"({job="a \"job\"",role="worker",process="worker-3")";
  EXPECT_THAT(text.Text(),
              AllOf(HasSubstr("# TYPE tug_push_bytes_total counter\n"),
                    HasSubstr(absl::StrCat("tug_push_bytes_total", labels, "} 12345\n")),
                    HasSubstr(absl::StrCat("tug_held_bytes", labels, ",kind=\"weights\"} 7\n"))));
}

TEST(MetricsText, LeavesOutWhatIsNotKnownYet) {
  MetricsText text({.job = "j", .role = "worker", .process = "worker-3"});
  text.Add(WorkerMetrics(), WorkerFigures());
  EXPECT_THAT(text.Text(), AllOf(HasSubstr("tug_compute_seconds_total"),
                                 Not(HasSubstr("tug_push_bytes_total"))));
}

TEST(MetricsText, CountsHistogramsUpToEachBound) {
  ServerFigures figures;
  figures.lanes = {{.updates = 6, .staleness = {3, 1, 0, 2}}, {.staleness = {1}}};
  MetricsText text({.job = "j", .role = "server", .process = "server-1"});
  text.Add(ServerMetrics(), figures);
  const std::string labels =
      R"(tug_staleness_updates_bucket{job="j",role="server",process="server-1",)";
  EXPECT_THAT(
      text.Text(),
      AllOf(
          HasSubstr(absl::StrCat(labels, "le=\"0\"} 4\n")),
          HasSubstr(absl::StrCat(labels, "le=\"1\"} 5\n")),
          HasSubstr(absl::StrCat(labels, "le=\"4\"} 7\n")),
          HasSubstr(absl::StrCat(labels, "le=\"+Inf\"} 7\n")),
          HasSubstr(R"(tug_staleness_updates_sum{job="j",role="server",process="server-1"} 7)"),
          HasSubstr(R"(tug_updates_total{job="j",role="server",process="server-1",lane="0"} 6)")));
}

TEST(StepTotals, AddUpSteps) {
  StepTotals totals;
  totals.Add({.seconds = 0.001, .compute_seconds = 0.0005, .tokens = 10});
  totals.Add({.seconds = 0.3, .compute_seconds = 0.2, .wait_seconds = 0.1, .tokens = 20});
  totals.Add({.seconds = 1000});
  const StepTotals::Figures figures = totals.figures();
  EXPECT_EQ(figures.tokens, 30u);
  EXPECT_DOUBLE_EQ(figures.compute_seconds, 0.2005);
  EXPECT_DOUBLE_EQ(figures.wait_seconds, 0.1);
  EXPECT_DOUBLE_EQ(figures.seconds.sum, 1000.301);
  ASSERT_EQ(figures.seconds.counts.size(), StepTotals::kBounds.size() + 1);
  EXPECT_EQ(figures.seconds.counts.front(), 1u);  // a bound is inclusive
  EXPECT_EQ(figures.seconds.counts.back(), 1u);
}

TEST(ProcessFigures, AreThoseOfThisProcess) {
  const ProcessFigures figures = ReadProcessFigures();
  EXPECT_GT(figures.resident_bytes, 1u << 20);
  EXPECT_GT(figures.virtual_bytes, figures.resident_bytes);
  EXPECT_GE(figures.open_files, 3u);
  EXPECT_GT(figures.max_files, figures.open_files);
  EXPECT_GT(figures.start_seconds, 1e9);
  double spent = figures.cpu_seconds;
  while (spent <= figures.cpu_seconds) spent = ReadProcessFigures().cpu_seconds;
}

TEST(Targets, AreNodesThatAnswer) {
  StatusReply status;
  status.set_name("gpt");
  NodeStatus* server = status.add_nodes();
  server->set_kind(SERVER);
  server->set_name("server-1");
  server->set_metrics_endpoint("10.0.0.2:9464");
  status.add_nodes()->set_kind(WORKER);  // has no endpoint yet
  const Json targets = Json::parse(TargetsJson("10.0.0.1:9464", status));
  const Json expected = Json::parse(R"([
      {"targets": ["10.0.0.1:9464"], "labels": {"job": "gpt", "role": "coordinator", "process": "coordinator"}},
      {"targets": ["10.0.0.2:9464"], "labels": {"job": "gpt", "role": "server", "process": "server-1"}}])");
  EXPECT_EQ(targets, expected);
}

}  // namespace
}  // namespace tug
