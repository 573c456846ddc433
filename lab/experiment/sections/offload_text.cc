// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/offload_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/charts/markdown_table.h"
#include "lab/experiment/measures/figure_text.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using OrderedJson = nlohmann::ordered_json;
using TextTable = std::vector<std::vector<std::string>>;

std::string MsText(double seconds) { return NumberText(seconds * 1e3, 1); }

std::vector<std::string> Line(const OffloadResults& results, const OffloadRun& run) {
  const auto [least, most] = run.StepRange();
  const bool plain = run.kind == OffloadKind::kPlain;
  const auto bubble = [&](double seconds) { return plain ? kNoFigure : MsText(seconds); };
  return {run.row().name,
          absl::StrCat(MsText(run.StepSeconds()), " [", MsText(least), ", ", MsText(most), "]"),
          NumberText(results.OfPlain(run), 2),
          NumberText(results.TokensPerSecond(run), 0),
          PercentText(Utilisation(run.steps)),
          bubble(run.BpBubbleSeconds()),
          bubble(run.FpBubbleSeconds()),
          MsText(run.OtherSeconds()),
          run.exposed.has_value() ? PercentText(*run.exposed) : kNoFigure,
          run.state_bytes.has_value() ? NumberText(*run.state_bytes * 1e-6, 2) : kNoFigure,
          NumberText(run.loss, 6)};
}

constexpr const char* kKindNames[] = {"forward", "backward", "update"};

OrderedJson AsJson(const OffloadResults& results, const OffloadRun& run) {
  OrderedJson json = {{"case", run.row().name},
                      {"device", run.device},
                      {"error", run.error.empty() ? OrderedJson(nullptr) : OrderedJson(run.error)},
                      {"step_seconds", OrNull(run.StepSeconds())},
                      {"of_plain", OrNull(run.error.empty() ? results.OfPlain(run) : std::nullopt)},
                      {"tokens_per_second", OrNull(results.TokensPerSecond(run))},
                      {"utilisation", OrNull(Utilisation(run.steps))},
                      {"bp_bubble_seconds", OrNull(run.BpBubbleSeconds())},
                      {"fp_bubble_seconds", OrNull(run.FpBubbleSeconds())},
                      {"other_seconds", OrNull(run.OtherSeconds())},
                      {"exposed", OrNull(run.exposed)},
                      {"state_bytes", OrNull(run.state_bytes)},
                      {"loss", OrNull(run.loss)},
                      {"steps", OrderedJson::array()},
                      {"passes", OrderedJson::array()}};
  for (const DeviceStep& step : run.steps) {
    json["steps"].push_back({{"step", step.step},
                             {"seconds", step.seconds()},
                             {"busy_seconds", step.busy_seconds},
                             {"bp_bubble_seconds", step.bp_bubble_seconds},
                             {"fp_bubble_seconds", step.fp_bubble_seconds},
                             {"other_seconds", step.other_seconds}});
  }
  for (const DeviceSpan& span : run.timeline.spans) {
    json["passes"].push_back({{"kind", kKindNames[static_cast<size_t>(span.kind)]},
                              {"step", span.step},
                              {"begin_seconds", span.begin_seconds},
                              {"end_seconds", span.end_seconds}});
  }
  return json;
}

double BubbleSeconds(const OffloadRun& run) {
  return run.BpBubbleSeconds() + run.FpBubbleSeconds();
}

}  // namespace

TextTable OffloadTable(const OffloadResults& results) {
  TextTable table = {{"case", "step (ms)", "step / plain", "tokens/s", "utilisation",
                      "BP bubble (ms)", "FP bubble (ms)", "other idle (ms)", "exposed",
                      "weights and Adam's state (MB)", "loss (nats per token)"}};
  for (const OffloadRun& run : results.runs) {
    if (run.error.empty()) {
      table.push_back(Line(results, run));
    } else {
      std::vector<std::string> line(table[0].size(), kNoFigure);
      line[0] = run.row().name;
      line[1] = "failed";
      table.push_back(std::move(line));
    }
  }
  return table;
}

std::string OffloadAnswer(const OffloadResults& results) {
  const OffloadRun* plain = results.Find(OffloadKind::kPlain);
  std::vector<std::string> times;
  const OffloadRun* last = nullptr;
  for (const OffloadKind kind : {OffloadKind::kOffload, OffloadKind::kOverlapped}) {
    const OffloadRun* const run = results.Find(kind);
    if (run == nullptr || plain == nullptr) continue;
    times.push_back(absl::StrFormat("%.2f times (%s)", *results.OfPlain(*run), run->row().name));
    last = run;
  }
  if (last == nullptr) return "";
  return absl::StrFormat(
      "a step takes %s that of plain, with %.2f MB of weights and Adam's state on the device "
      "instead of %.2f MB.",
      absl::StrJoin(times, " and "), last->state_bytes.value_or(0) * 1e-6,
      plain->state_bytes.value_or(0) * 1e-6);
}

std::vector<std::string> OffloadFindings(const OffloadResults& results) {
  std::vector<std::string> findings;
  const OffloadRun* offload = results.Find(OffloadKind::kOffload);
  const OffloadRun* overlapped = results.Find(OffloadKind::kOverlapped);
  if (offload != nullptr) {
    findings.push_back(
        absl::StrFormat("offload: in a step of %.1f ms the device is idle for %.1f ms: BP bubble "
                        "%.1f ms, FP bubble %.1f ms; its utilisation is %s",
                        offload->StepSeconds() * 1e3, BubbleSeconds(*offload) * 1e3,
                        offload->BpBubbleSeconds() * 1e3, offload->FpBubbleSeconds() * 1e3,
                        PercentText(Utilisation(offload->steps))));
  }
  if (offload != nullptr && overlapped != nullptr) {
    findings.push_back(absl::StrFormat(
        "overlapped: both bubbles together are %.1f ms instead of %.1f ms; a step takes %.1f ms, "
        "%.2f times that of offload",
        BubbleSeconds(*overlapped) * 1e3, BubbleSeconds(*offload) * 1e3,
        overlapped->StepSeconds() * 1e3, overlapped->StepSeconds() / offload->StepSeconds()));
  }
  return findings;
}

std::vector<std::string> OffloadFailures(const OffloadResults& results) {
  std::vector<std::string> failures;
  for (const OffloadRun& run : results.runs) {
    if (!run.error.empty()) failures.push_back(absl::StrCat(run.row().name, ": ", run.error));
  }
  return failures;
}

std::string OffloadMarkdown(const OffloadResults& results) {
  const std::string answer = OffloadAnswer(results);
  std::string text = answer.empty() ? "" : absl::StrCat("**Answer:** ", answer, "\n\n");
  absl::StrAppend(&text, MarkdownTable(OffloadTable(results)), "\n");
  for (const std::string& finding : OffloadFindings(results)) {
    absl::StrAppend(&text, "- ", finding, "\n");
  }
  for (const std::string& failure : OffloadFailures(results)) {
    absl::StrAppend(&text, "- failed: ", failure, "\n");
  }
  return text;
}

OrderedJson OffloadJson(const OffloadResults& results) {
  OrderedJson json = {{"command", results.command},
                      {"settings", OrderedJson::object()},
                      {"tokens_per_step", results.tokens_per_step},
                      {"answer", OffloadAnswer(results)},
                      {"findings", OffloadFindings(results)},
                      {"failures", OffloadFailures(results)},
                      {"runs", OrderedJson::array()}};
  for (const auto& [name, value] : results.settings) json["settings"][name] = value;
  for (const OffloadRun& run : results.runs) json["runs"].push_back(AsJson(results, run));
  return json;
}

}  // namespace tug
