// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/sync_section.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/charts/markdown_table.h"
#include "base/xml_text.h"
#include "lab/experiment/charts/report_page.h"
#include "lab/experiment/charts/worker_timeline_svg.h"
#include "lab/experiment/sections/sync_charts.h"
#include "lab/experiment/sections/sync_results.h"

namespace tug {
namespace {

constexpr size_t kDrawnSlowSteps = 3;  // steps of the slowest worker that timelines show

std::string Speed(const SyncPart& part, size_t repeats) {
  std::string text = "Batches (";
  if (part.batch_samples > 0) absl::StrAppend(&text, part.batch_samples, " samples, ");
  text += "one step of all virtual workers) per second";
  const std::string interval = IntervalMeaning(repeats);
  absl::StrAppend(&text,
                  interval.empty() ? "." : ": medians; lines across them show " + interval + ".");
  const bool has_bounds = std::any_of(part.cases.begin(), part.cases.end(), [](const auto& one) {
    return one.bound.has_value() && one.of_itself.has_value();
  });
  if (has_bounds) {
    absl::StrAppend(&text, " ", BoundSwatch(),
                    "upper bound of the speed that a mode can keep with the slow worker.");
  }
  return FigureHtml("Speed", text, SpeedBarsSvg(part));
}

// Timelines of cases with a persistent straggler; of all traced cases if there is none.
std::string Timelines(const SyncPart& part) {
  std::vector<const SyncCase*> traced;
  for (const SyncCase& one : part.cases) {
    if (one.first_repeat != nullptr && !one.first_repeat->timeline.empty()) traced.push_back(&one);
  }
  const auto beside_slow = [](const SyncCase* one) {
    return one->kind == StragglerKind::kPersistent;
  };
  const auto found = std::find_if(traced.begin(), traced.end(), beside_slow);
  const SyncCase* slow = found == traced.end() ? nullptr : *found;
  std::vector<DrawnWorkers> drawn;
  for (const SyncCase* one : traced) {
    if (slow != nullptr && !beside_slow(one)) continue;
    std::string note = one->straggler;
    if (one->batches.has_value()) {
      absl::StrAppendFormat(&note, ", %.2f batches per second", one->batches->median);
    }
    if (one->of_bsp.has_value()) {
      absl::StrAppendFormat(&note, ", %.2f of undisturbed bsp", one->of_bsp->median);
    }
    drawn.push_back({one->mode, note, &one->first_repeat->timeline});
  }
  const std::string who = slow == nullptr
                              ? "the slowest worker"
                              : absl::StrFormat("a worker %g times as slow as the others %s",
                                                slow->slowdown(), Swatch("background:var(--slow)"));
  std::optional<uint32_t> marked;
  if (slow != nullptr) marked = slow->config->straggler().virtual_worker();
  return FigureHtml("Steps and waits of each worker",
                    absl::StrCat("The first ", kDrawnSlowSteps, " steps of ", who,
                                 ", and the other workers during that time, in the first repeat. A "
                                 "box is a step, with its number; ",
                                 WaitSwatch(), "waiting for weights."),
                    WorkerTimelinesSvg(drawn, kDrawnSlowSteps, marked));
}

// Meaning of the columns that the table has.
std::string PartTableText(const SyncPart& part) {
  const auto any = [&](const auto& has) {
    return std::any_of(part.cases.begin(), part.cases.end(), has);
  };
  std::string text;
  if (any([](const SyncCase& one) { return one.of_bsp.has_value(); })) {
    text += "Vs bsp: speed divided by that of undisturbed bsp, repeat by repeat. ";
  }
  if (any([](const SyncCase& one) { return one.of_itself.has_value(); })) {
    text += "Vs undisturbed: divided by that of the same mode without stragglers. ";
  }
  if (any([](const SyncCase& one) { return one.bound.has_value(); })) {
    text += "Bound: upper bound of that with the slow worker. ";
  }
  if (any([](const SyncCase& one) { return one.pace.has_value(); })) {
    text += "The straggler's pace: the speed if that worker never waited. ";
  }
  return text +
         "Time waiting for weights: share of the workers' time, and of the worker that waited "
         "most.";
}

std::string PartTable(const SyncPart& part) {
  const std::vector<std::vector<std::string>> table = SyncTable(part);
  return absl::StrCat("<h3>All figures</h3>\n<p>", XmlEscaped(PartTableText(part)), "</p>\n",
                      TableHtml(table, GroupsBegin(table)));
}

std::string PartHtml(const SyncPart& part, size_t repeats) {
  return absl::StrCat(
      "<h2>", XmlEscaped(part.title), "</h2>\n<p class=\"note\">", XmlEscaped(part.about), "</p>\n",
      ListHtml(SyncFindings(part)), Speed(part, repeats), Timelines(part),
      FigureHtml(
          "Time of each worker",
          absl::StrCat("Virtual workers from top to bottom: share of the step time in which each ",
                       Swatch("background:var(--busy)"), "computes, ",
                       Swatch("background:var(--slow)"), "is slowed down, ", WaitSwatch(),
                       "waits for weights. First repeat."),
          WaitBarsSvg(part)),
      FigureHtml(
          "Staleness",
          "Share of all updates by staleness: the number of updates of a segment between the "
          "weights that a gradient was computed with and the gradient's own update. It is 0 "
          "where an update waits for all virtual workers. First repeat.",
          StalenessSvg(part)),
      PartTable(part));
}

}  // namespace

std::string SyncSectionHtml(const ExperimentResults& results) {
  std::string html;
  for (const SyncPart& part : SyncPartsOf(results)) html += PartHtml(part, results.plan.repeats);
  return html;
}

std::string SyncSectionMarkdown(const ExperimentResults& results) {
  std::string text;
  for (const SyncPart& part : SyncPartsOf(results)) {
    absl::StrAppend(&text, "## ", part.title, "\n\n", part.about, "\n\n",
                    MarkdownTable(SyncTable(part)), "\n");
    for (const std::string& finding : SyncFindings(part)) {
      absl::StrAppend(&text, "- ", finding, "\n");
    }
    text += "\n";
  }
  return text;
}

}  // namespace tug
