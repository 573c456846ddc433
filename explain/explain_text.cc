// SPDX-License-Identifier: Apache-2.0
#include "explain/explain_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/charts/markdown_table.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Table = std::vector<std::vector<std::string>>;

constexpr double kMinPart = 0.01;  // of a separate row
constexpr size_t kPartsOfAStep = 3;

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }
std::string Percent(double part) { return absl::StrFormat("%.1f%%", 100 * part); }
std::string Ms(double seconds) { return absl::StrFormat("%.2f", seconds * 1e3); }
const char* NameOf(PathWork what) { return kPathWorkNames[static_cast<size_t>(what)]; }

std::string RowsText(const Blame& blame) {
  Table table = {{"work, node", "of all steps", "median step", "min", "max", "largest part in"}};
  double rest = 0;
  size_t more = 0;
  for (const BlameRow& row : blame.rows) {
    if (row.part < kMinPart) {
      rest += row.part;
      ++more;
      continue;
    }
    table.push_back({BlameText(row.what, row.who), Percent(row.part), Percent(row.median_part),
                     Percent(row.least_part), Percent(row.most_part),
                     absl::StrFormat("%d of %d", row.steps, blame.steps)});
  }
  if (more > 0) {
    const char* parts = more == 1 ? " smaller part" : " smaller parts, together";
    table.push_back({absl::StrCat(more, parts), Percent(rest), "", "", "", ""});
  }
  return MarkdownTable(std::move(table));
}

std::string StepsText(const std::vector<StepPath>& paths) {
  Table table = {{"step", "ms", "largest parts"}};
  for (const StepPath& path : paths) {
    const double seconds = Seconds(path.end_ns - path.begin_ns);
    std::vector<std::string> parts;
    for (const PathShare& share : SharesOf(path)) {
      if (parts.size() == kPartsOfAStep) break;
      parts.push_back(absl::StrFormat("%s %.0f%%", BlameText(share.what, share.who),
                                      100 * share.seconds / seconds));
    }
    table.push_back({absl::StrCat(path.clock + 1), Ms(seconds), absl::StrJoin(parts, ", ")});
  }
  return MarkdownTable(std::move(table));
}

}  // namespace

std::string BlameReport(const std::vector<StepPath>& paths) {
  const Blame blame = BlameOf(paths);
  std::string text =
      absl::StrFormat("critical path of %d steps, %.1f ms each; unexplained: %s\n", blame.steps,
                      blame.step_seconds * 1e3, Percent(blame.unexplained_part));
  absl::StrAppend(&text, "\n", RowsText(blame));
  std::vector<std::string> workers;
  for (const BlamedWorker& worker : blame.workers) {
    workers.push_back(absl::StrFormat("%s in %d of %d (%s of all time)", worker.who, worker.steps,
                                      blame.steps, Percent(worker.part)));
  }
  absl::StrAppend(&text, "\nworker with the largest part of a step: ",
                  workers.empty() ? "none" : absl::StrJoin(workers, ", "), "\n\n",
                  StepsText(paths));
  return text;
}

OrderedJson BlameJson(const std::vector<StepPath>& paths) {
  const Blame blame = BlameOf(paths);
  OrderedJson rows = OrderedJson::array(), workers = OrderedJson::array(),
              steps = OrderedJson::array();
  for (const BlameRow& row : blame.rows) {
    rows.push_back({{"what", NameOf(row.what)},
                    {"who", row.who},
                    {"part", row.part},
                    {"median_part", row.median_part},
                    {"least_part", row.least_part},
                    {"most_part", row.most_part},
                    {"largest_of_steps", row.steps}});
  }
  for (const BlamedWorker& worker : blame.workers) {
    workers.push_back({{"who", worker.who}, {"part", worker.part}, {"steps", worker.steps}});
  }
  for (const StepPath& path : paths) steps.push_back(ChainJson(path));
  return {{"steps", blame.steps},
          {"step_seconds", blame.step_seconds},
          {"unexplained_part", blame.unexplained_part},
          {"blame", rows},
          {"workers", workers},
          {"chains", steps}};
}

std::string ChainText(const StepPath& path) {
  Table table = {{"from, ms", "takes, ms", "work, node", "block"}};
  for (const PathPart& part : path.parts) {
    table.push_back({Ms(Seconds(part.begin_ns - path.begin_ns)),
                     absl::StrFormat("%.3f", Seconds(part.end_ns - part.begin_ns) * 1e3),
                     BlameText(part.what, part.who), part.block});
  }
  return absl::StrFormat("critical path of step %d, %.2f ms\n\n%s", path.clock + 1,
                         Seconds(path.end_ns - path.begin_ns) * 1e3,
                         MarkdownTable(std::move(table)));
}

OrderedJson ChainJson(const StepPath& path) {
  OrderedJson parts = OrderedJson::array();
  for (const PathPart& part : path.parts) {
    parts.push_back({{"what", NameOf(part.what)},
                     {"who", part.who},
                     {"block", part.block},
                     {"begin_seconds", Seconds(part.begin_ns - path.begin_ns)},
                     {"seconds", Seconds(part.end_ns - part.begin_ns)}});
  }
  return {{"step", path.clock + 1},
          {"seconds", Seconds(path.end_ns - path.begin_ns)},
          {"parts", parts}};
}

std::string WhatIfText(const WhatIfReport& report) {
  std::string text = absl::StrFormat(
      "what if: simulated from this trace, with %s %.1f MB/s. A step of the job as it ran: "
      "%.1f ms simulated, %.1f ms measured: %+.1f%%; the predictions below may be off by as much\n",
      report.in_memory ? "an exchange through memory at" : "links of",
      report.link_bytes_per_second * 1e-6, report.simulated_seconds * 1e3,
      report.measured_seconds * 1e3, 100 * report.base_error());
  Table table = {{"change", "speed-up", "step, ms", "settings"}};
  for (const WhatIfPrediction& prediction : report.predictions) {
    table.push_back({prediction.name, absl::StrFormat("%.2fx", prediction.speed_up),
                     absl::StrFormat("%.1f", prediction.step_seconds * 1e3),
                     absl::StrJoin(prediction.sets, " ")});
  }
  absl::StrAppend(&text, "\n", MarkdownTable(std::move(table)));
  for (const std::string& note : report.notes) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

}  // namespace tug
