// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/exchange_section.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/charts/markdown_table.h"
#include "lab/experiment/charts/report_page.h"
#include "lab/experiment/measures/figure_text.h"
#include "lab/experiment/sections/exchange_charts.h"
#include "lab/experiment/sections/exchange_points.h"

namespace tug {
namespace {

using Table = std::vector<std::vector<std::string>>;

constexpr double kMb = 1e-6;

std::string RatioText(const std::optional<RepeatSpread>& measured, double of) {
  if (!measured.has_value() || !(of > 0)) return kNoFigure;
  return NumberText(measured->median / of, 2);
}

// REQUIRES: point.cost has a value.
std::vector<std::string> ModelLine(const ExchangePoint& point) {
  const double seconds_ms = point.cost->seconds * 1e3;
  const double overlapped_ms = point.cost->overlapped_seconds * 1e3;
  const double link_mb = point.cost->BusiestBytes() * kMb;
  return {point.group,
          point.name,
          SpreadText(point.step_ms, 1),
          NumberText(seconds_ms, 1),
          RatioText(point.step_ms, seconds_ms),
          NumberText(overlapped_ms, 1),
          RatioText(point.step_ms, overlapped_ms),
          SpreadText(point.link_mb, 2),
          NumberText(link_mb, 2),
          RatioText(point.link_mb, link_mb)};
}

// A row for each case with a formula.
Table ModelTable(const std::vector<ExchangePoint>& points) {
  Table table = {{"group", "case", MeasureHeading("step_time"), "alpha-beta (ms)",
                  "step / alpha-beta", "overlapped (ms)", "step / overlapped", "busiest link (MB)",
                  "link by formula (MB)", "link / formula"}};
  for (const auto& group : GroupsOf(points)) {
    for (const ExchangePoint* point : group) {
      if (point->cost.has_value()) table.push_back(ModelLine(*point));
    }
  }
  return table;
}

// Memory by node and kind, in MB.
Table MemoryTable(const std::vector<ExchangePoint>& points) {
  Table table = {{"case", "worker: weights (MB)", "worker: gradients (MB)", "server: weights (MB)",
                  "server: optimizer (MB)", "server: sums (MB)", "worker: all (MB)",
                  "worker: by formula (MB)", "server: all (MB)", "server: by formula (MB)",
                  "on a worker's host (MB)", "lectures (MB)"}};
  const auto mb = [](uint64_t bytes) { return NumberText(static_cast<double>(bytes) * kMb, 2); };
  const auto formula = [&](const NodeHeldBytes& held) {
    return held.predicted > 0 ? mb(held.predicted) : std::string(kNoFigure);
  };
  for (const ExchangePoint* point : MemoryPoints(points)) {
    const NodeHeldBytes worker = point->worker_held.value_or(NodeHeldBytes{});
    const NodeHeldBytes server = point->server_held.value_or(NodeHeldBytes{});
    std::optional<double> on_host = point->HeldOnHost(), lectures;
    if (on_host.has_value()) on_host = *on_host * kMb;
    if (point->workers > 1 && point->model_bytes > 0) {
      lectures = LecturesHeldBytes(point->exchange, point->workers, point->model_bytes) * kMb;
    }
    table.push_back({point->name, mb(worker.weights), mb(worker.gradients), mb(server.weights),
                     mb(server.optimizer), mb(server.sums), mb(worker.total()), formula(worker),
                     mb(server.total()), formula(server), NumberText(on_host, 2),
                     NumberText(lectures, 2)});
  }
  return table;
}

std::string StepFinding(const ExchangePoint& point) {
  std::string text =
      absl::StrCat(point.name, " takes ", SpreadText(point.step_ms, 1), " ms per step");
  if (point.cost.has_value()) {
    absl::StrAppendFormat(&text, " (alpha-beta: %.1f ms, overlapped %.1f)",
                          point.cost->seconds * 1e3, point.cost->overlapped_seconds * 1e3);
  }
  return text;
}

std::string GroupFinding(const std::vector<const ExchangePoint*>& group) {
  const ExchangePoint *fastest = nullptr, *slowest = nullptr;
  for (const ExchangePoint* point : group) {
    if (!point->step_ms.has_value()) continue;
    const double ms = point->step_ms->median;
    if (fastest == nullptr || ms < fastest->step_ms->median) fastest = point;
    if (slowest == nullptr || ms > slowest->step_ms->median) slowest = point;
  }
  if (fastest == slowest) return "";
  return absl::StrCat(
      group.front()->group, group.front()->group.empty() ? "" : ": ", "the fastest, ",
      StepFinding(*fastest), "; the slowest, ", StepFinding(*slowest),
      absl::StrFormat(", %.2f times as long", slowest->step_ms->median / fastest->step_ms->median));
}

std::string MemoryFinding(const std::vector<ExchangePoint>& points) {
  const ExchangePoint *least = nullptr, *most = nullptr;
  for (const ExchangePoint* point : MemoryPoints(points)) {
    if (!point->exchange.IsPairedWithWorkers() || !point->HeldOnHost().has_value()) continue;
    if (least == nullptr || point->HeldOnHost() < least->HeldOnHost()) least = point;
    if (most == nullptr || point->HeldOnHost() > most->HeldOnHost()) most = point;
  }
  if (least == most) return "";
  return absl::StrFormat(
      "memory of a worker and the server on its host: lowest with %s, %.2f MB; highest with %s, "
      "%.2f MB",
      least->name, *least->HeldOnHost() * kMb, most->name, *most->HeldOnHost() * kMb);
}

std::vector<std::string> Findings(const std::vector<ExchangePoint>& points) {
  std::vector<std::string> findings;
  for (const auto& group : GroupsOf(points)) findings.push_back(GroupFinding(group));
  findings.push_back(MemoryFinding(points));
  std::erase(findings, "");
  return findings;
}

std::string StepTimeText(const std::vector<ExchangePoint>& points) {
  const std::string measured = "Medians of the repeats.";
  if (std::none_of(points.begin(), points.end(),
                   [](const ExchangePoint& point) { return point.cost.has_value(); })) {
    return measured;
  }
  return measured +
         " Full line and the first number after alpha-beta: the alpha-beta model without "
         "computing, one phase after the other (push, then pull; reduce-scatter, then all-gather). "
         "Dashed line and the second number: the same with overlapping phases, so that links are "
         "busy in both directions at once.";
}

std::string Pictures(const std::vector<ExchangePoint>& points) {
  return absl::StrCat(
      FigureHtml("Ways to exchange", StepTimeText(points), StepTimesSvg(points)),
      FigureHtml("The alpha-beta model",
                 "Lines: the model's step time without computing; dashed: push and pull overlap. "
                 "Dots: measured, medians of the repeats. Both axes are logarithmic. The names of "
                 "lines that coincide are stacked.",
                 AlphaBetaSvg(points)),
      FigureHtml("Bytes of each host",
                 absl::StrCat("Bytes that each host sent over its link per step of the first "
                              "repeat, one bar per host: ",
                              Swatch("background:var(--busy)"),
                              "a server alone; in the colour of the case: a worker (with the "
                              "server on its host, if any). Includes all headers and the first "
                              "weights. Dashed: the busiest host by formula, payload only."),
                 HostBytesSvg(points)),
      FigureHtml("Memory",
                 "Training memory of the worker and the server that hold most, "
                 "peak of each kind, in the first repeat, without activations. "
                 "Dashed: the documented formulas of workers and servers.",
                 MemorySvg(points)));
}

std::string TablesHtml(const std::vector<ExchangePoint>& points) {
  const Table model = ModelTable(points), memory = MemoryTable(points);
  std::string html;
  if (model.size() > 1) {
    const auto link = std::find_if(points.begin(), points.end(), [](const ExchangePoint& point) {
      return point.link_cost.has_value();
    });
    absl::StrAppend(
        &html, "<h3>Compared with the alpha-beta model</h3>\n<p>",
        absl::StrFormat("A message of n bytes takes alpha + n beta: alpha is %g us, beta is the "
                        "time per byte of TCP payload on the link. ",
                        link->link_cost->alpha * 1e6),
        "Alpha-beta: one phase after the other; overlapped: links busy in both directions at once; "
        "with a slash: measured divided by the model. Busiest link: of all hosts, in its busier "
        "direction, "
        "headers included; by formula: payload only.</p>\n",
        TableHtml(model, GroupsBegin(model)));
  }
  if (memory.size() > 1) {
    absl::StrAppend(&html,
                    "<h3>Memory</h3>\n"
                    "<p>For the worker and the server that hold most. Lectures: for a worker "
                    "and the server on its host, FP32: 16 Psi, 8 Psi + 8 Psi / N, 4 Psi + 12 Psi / "
                    "N, 16 Psi / N; for a parameter server's worker alone 8 Psi. Each case with "
                    "the first values of the other axes.</p>\n",
                    TableHtml(memory, {}));
  }
  return html;
}

}  // namespace

std::string ExchangeSectionHtml(const ExperimentResults& results) {
  const std::vector<ExchangePoint> points = ExchangePointsOf(results);
  if (points.empty()) return "";
  return absl::StrCat("<h2>Which way to exchange is fastest?</h2>\n", ListHtml(Findings(points)),
                      Pictures(points), TablesHtml(points));
}

std::string ExchangeSectionMarkdown(const ExperimentResults& results) {
  const std::vector<ExchangePoint> points = ExchangePointsOf(results);
  if (points.empty()) return "";
  std::string text = "## Which way to exchange is fastest?\n\n";
  for (const std::string& finding : Findings(points)) absl::StrAppend(&text, "- ", finding, "\n");
  if (const Table model = ModelTable(points); model.size() > 1) {
    absl::StrAppend(&text, "\n### Compared with the alpha-beta model\n\n", MarkdownTable(model));
  }
  if (const Table memory = MemoryTable(points); memory.size() > 1) {
    absl::StrAppend(&text, "\n### Memory\n\n", MarkdownTable(memory));
  }
  return text + "\n";
}

}  // namespace tug
