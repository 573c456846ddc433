#include "experiment/exchange_text.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiment/figure_text.h"
#include "experiment/markdown_table.h"

namespace tug {
namespace {

using Json = nlohmann::ordered_json;
using Table = std::vector<std::vector<std::string>>;

std::optional<double> Ms(const std::optional<double>& seconds) {
  if (!seconds.has_value()) return std::nullopt;
  return *seconds * 1e3;
}

std::optional<double> Mb(const std::optional<double>& bytes) {
  if (!bytes.has_value()) return std::nullopt;
  return *bytes * 1e-6;
}

std::optional<double> Ratio(const std::optional<double>& value, const std::optional<double>& of) {
  if (!value.has_value() || !of.has_value() || !(*of > 0)) return std::nullopt;
  return *value / *of;
}

std::vector<std::string> RunLine(const ExchangeResults& results, const ExchangeRun& run) {
  const std::optional<ExchangeCost> cost = results.CostOf(run);
  std::optional<double> seconds, overlapped, bytes;
  if (cost.has_value()) {
    seconds = cost->seconds;
    overlapped = cost->overlapped_seconds;
    bytes = cost->BusiestBytes();
  }
  const double step = run.StepSeconds();
  return {run.link,
          NumberText(Mb(run.ModelBytes()), 2),
          run.exchange.name,
          run.error.empty() ? NumberText(step * 1e3, 1) : "failed",
          run.error.empty() ? absl::StrCat(NumberText(run.LeastStepSeconds() * 1e3, 1), " to ",
                                           NumberText(run.MostStepSeconds() * 1e3, 1))
                            : kNoFigure,
          NumberText(Ms(seconds), 1),
          NumberText(Ratio(step, seconds), 2),
          NumberText(Ms(overlapped), 1),
          NumberText(Ratio(step, overlapped), 2),
          NumberText(Mb(run.BusiestBytes()), 2),
          NumberText(Mb(bytes), 2),
          NumberText(Ratio(run.BusiestBytes(), bytes), 2)};
}

std::string MegabytesText(double bytes) { return absl::StrFormat("%g MB", bytes * 1e-6); }

std::string StepFinding(const ExchangeResults& results, const ExchangeRun& run) {
  std::string text =
      absl::StrFormat("%s takes %.1f ms a step", run.exchange.name, run.StepSeconds() * 1e3);
  if (const auto cost = results.CostOf(run)) {
    absl::StrAppendFormat(&text, " (alpha-beta: %.1f ms, overlapped %.1f)", cost->seconds * 1e3,
                          cost->overlapped_seconds * 1e3);
  }
  return text;
}

std::string GroupFinding(const ExchangeResults& results, const std::string& link, double size) {
  const ExchangeRun* fastest = results.Fastest(link, size);
  if (fastest == nullptr) return "";
  const ExchangeRun* slowest = fastest;
  for (const ExchangeRun& run : results.runs) {
    if (run.link == link && run.planned_bytes == size &&
        run.StepSeconds() > slowest->StepSeconds()) {
      slowest = &run;
    }
  }
  std::string text = absl::StrCat(GroupTitle(results, link, size), ": the fastest, ",
                                  StepFinding(results, *fastest));
  if (slowest != fastest) {
    absl::StrAppend(
        &text, "; the slowest, ", StepFinding(results, *slowest),
        absl::StrFormat(", %.2f times as long", slowest->StepSeconds() / fastest->StepSeconds()));
  }
  return text;
}

std::string MemoryFinding(const ExchangeResults& results) {
  const ExchangeRun *least = nullptr, *most = nullptr;
  for (const ExchangeCase& exchange : results.cases) {
    const ExchangeRun* run = MemoryRun(results, exchange);
    if (run == nullptr || !exchange.BesideWorkers() || !HeldOnHost(*run).has_value()) continue;
    if (least == nullptr || HeldOnHost(*run) < HeldOnHost(*least)) least = run;
    if (most == nullptr || HeldOnHost(*run) > HeldOnHost(*most)) most = run;
  }
  if (least == nullptr || least == most) return "";
  return absl::StrFormat(
      "memory of a worker with the server beside it: least with %s, %.2f MB; most with %s, %.2f MB",
      least->exchange.name, *HeldOnHost(*least) * 1e-6, most->exchange.name,
      *HeldOnHost(*most) * 1e-6);
}

Json HeldJson(const HeldBytes& held) {
  return {{"weight_bytes", held.weights},
          {"gradient_bytes", held.gradients},
          {"optimizer_bytes", held.optimizer},
          {"sum_bytes", held.sums},
          {"cached_bytes", held.cached},
          {"predicted_bytes", held.predicted}};
}

Json AsJson(const ExchangeResults& results, const ExchangeRun& run) {
  Json json = {{"case", run.exchange.name},
               {"link", run.link},
               {"servers", run.exchange.Servers(run.workers)},
               {"hosts", run.hosts.size()},
               {"model_bytes", OrNull(run.ModelBytes())},
               {"error", run.error.empty() ? Json(nullptr) : Json(run.error)},
               {"warm_up_steps", run.warm_up},
               {"step_seconds", OrNull(run.StepSeconds())},
               {"wait_seconds", OrNull(run.WaitSeconds())},
               {"busiest_bytes", OrNull(run.BusiestBytes())},
               {"alpha_beta", nullptr},
               {"steps", Json::array()},
               {"links", Json::array()},
               {"nodes", Json::array()}};
  if (const auto cost = results.CostOf(run)) {
    json["alpha_beta"] = {{"step_seconds", cost->seconds},
                          {"overlapped_step_seconds", cost->overlapped_seconds},
                          {"busiest_bytes", cost->BusiestBytes()}};
  }
  for (const StepPoint& point : run.figures.steps) {
    json["steps"].push_back({{"step", point.step},
                             {"step_seconds", point.step_seconds},
                             {"wait_seconds", point.wait_seconds},
                             {"pushed_bytes", point.pushed_bytes},
                             {"pulled_bytes", point.pulled_bytes}});
  }
  for (size_t host = 0; host < run.hosts.size(); ++host) {
    json["links"].push_back(
        {{"server_alone", run.exchange.HasServerAlone(static_cast<uint32_t>(host), run.workers)},
         {"sent_bytes", run.hosts[host].sent_bytes},
         {"received_bytes", run.hosts[host].received_bytes}});
  }
  for (const NodeFigures& node : run.figures.nodes) {
    Json of_node = {{"node", node.node_id},
                    {"role", node.server ? "server" : "worker"},
                    {"socket_bytes", node.socket_bytes}};
    of_node.update(HeldJson(node.held));
    json["nodes"].push_back(std::move(of_node));
  }
  return json;
}

}  // namespace

std::string GroupTitle(const ExchangeResults& results, const std::string& link,
                       double planned_bytes) {
  if (results.sizes.size() < 2) return "link " + link;
  return absl::StrCat("link ", link, ", ", MegabytesText(planned_bytes));
}

Table StepTable(const ExchangeResults& results) {
  Table table = {{"case"}};
  for (const std::string& link : results.link_names) {
    for (const double size : results.sizes) {
      table[0].push_back(absl::StrCat(GroupTitle(results, link, size), ", ms"));
    }
  }
  for (const ExchangeCase& exchange : results.cases) {
    std::vector<std::string> line = {exchange.name};
    for (const std::string& link : results.link_names) {
      for (const double size : results.sizes) {
        const ExchangeRun* run = results.Find(exchange, link, size);
        line.push_back(run == nullptr       ? kNoFigure
                       : run->error.empty() ? NumberText(run->StepSeconds() * 1e3, 1)
                                            : "failed");
      }
    }
    table.push_back(std::move(line));
  }
  return table;
}

Table RunTable(const ExchangeResults& results) {
  Table table = {{"link", "model, MB", "case", "step, ms", "range", "alpha-beta, ms", "x",
                  "overlapped, ms", "x", "busiest link, MB", "by formula", "x"}};
  for (const ExchangeRun& run : results.runs) table.push_back(RunLine(results, run));
  return table;
}

Table MemoryTable(const ExchangeResults& results) {
  Table table = {{"case", "worker: weights, MB", "gradients", "server: weights", "optimizer",
                  "sums", "worker", "by formula", "server", "by formula", "on a worker's host",
                  "lectures"}};
  const auto mb = [](uint64_t bytes) { return NumberText(static_cast<double>(bytes) * 1e-6, 2); };
  const auto formula = [&](const HeldBytes& held) {
    return held.predicted > 0 ? mb(held.predicted) : std::string(kNoFigure);
  };
  for (const ExchangeCase& exchange : results.cases) {
    const ExchangeRun* run = MemoryRun(results, exchange);
    if (run == nullptr) continue;
    const HeldBytes worker = run->WorkerHeld().value_or(HeldBytes{});
    const HeldBytes server = run->ServerHeld().value_or(HeldBytes{});
    table.push_back(
        {exchange.name, mb(worker.weights), mb(worker.gradients), mb(server.weights),
         mb(server.optimizer), mb(server.sums), mb(worker.total()), formula(worker),
         mb(server.total()), formula(server), NumberText(Mb(HeldOnHost(*run)), 2),
         NumberText(LecturesHeldBytes(exchange, run->workers, run->ModelBytes()) * 1e-6, 2)});
  }
  return table;
}

std::vector<std::string> Findings(const ExchangeResults& results) {
  std::vector<std::string> findings;
  for (const std::string& link : results.link_names) {
    for (const double size : results.sizes) {
      if (std::string text = GroupFinding(results, link, size); !text.empty()) {
        findings.push_back(std::move(text));
      }
    }
  }
  if (std::string text = MemoryFinding(results); !text.empty()) findings.push_back(std::move(text));
  return findings;
}

std::vector<std::string> Failures(const ExchangeResults& results) {
  std::vector<std::string> failures;
  for (const ExchangeRun& run : results.runs) {
    if (run.error.empty()) continue;
    failures.push_back(absl::StrCat(run.exchange.name, ", ",
                                    GroupTitle(results, run.link, run.planned_bytes), ": ",
                                    run.error));
  }
  return failures;
}

std::string ResultsMarkdown(const ExchangeResults& results) {
  std::string text = absl::StrCat("## Step times\n\n", MarkdownTable(StepTable(results)), "\n");
  for (const std::string& finding : Findings(results)) absl::StrAppend(&text, "- ", finding, "\n");
  for (const std::string& failure : Failures(results)) {
    absl::StrAppend(&text, "- failed: ", failure, "\n");
  }
  absl::StrAppend(&text, "\n## All runs\n\n", MarkdownTable(RunTable(results)));
  if (const Table memory = MemoryTable(results); memory.size() > 1) {
    absl::StrAppend(&text, "\n## Memory\n\n", MarkdownTable(memory));
  }
  return text;
}

Json ResultsJson(const ExchangeResults& results) {
  Json json = {{"command", results.command},    {"settings", Json::object()},
               {"workers", results.workers},    {"alpha_seconds", results.alpha_seconds},
               {"findings", Findings(results)}, {"failures", Failures(results)},
               {"runs", Json::array()}};
  for (const auto& [name, value] : results.settings) json["settings"][name] = value;
  for (const ExchangeRun& run : results.runs) json["runs"].push_back(AsJson(results, run));
  return json;
}

}  // namespace tug
