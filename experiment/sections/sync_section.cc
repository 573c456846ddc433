// SPDX-License-Identifier: Apache-2.0
#include "experiment/sections/sync_section.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/xml_text.h"
#include "experiment/charts/markdown_table.h"
#include "experiment/charts/report_page.h"
#include "experiment/charts/worker_timeline_svg.h"
#include "experiment/sections/sync_charts.h"
#include "experiment/sections/sync_results.h"

namespace tug {
namespace {

constexpr size_t kDrawnSlowSteps = 3;  // steps of the slowest worker that timelines show

std::string Speed(const SyncPart& part, size_t repeats) {
  std::string text = "Batches (";
  if (part.batch_samples > 0) absl::StrAppend(&text, part.batch_samples, " samples, ");
  text += "a step of all virtual workers) a second";
  const std::string interval = IntervalMeaning(repeats);
  absl::StrAppend(&text,
                  interval.empty() ? "." : ": medians, with lines across them " + interval + ".");
  if (part.replay) {
    absl::StrAppend(&text, " ", BoundSwatch(),
                    "the most that a mode can keep of its undisturbed speed beside the slow "
                    "worker.");
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
      absl::StrAppendFormat(&note, ", %.2f batches a second", one->batches->median);
    }
    if (one->of_bsp.has_value()) {
      absl::StrAppendFormat(&note, ", %.2f of undisturbed bsp", one->of_bsp->median);
    }
    drawn.push_back({one->mode, note, &one->first_repeat->timeline});
  }
  const std::string who =
      slow == nullptr ? "the slowest worker"
                      : absl::StrFormat("a worker that is %g times as slow as the others %s",
                                        slow->slowdown(), Swatch("background:var(--slow)"));
  std::optional<uint32_t> marked;
  if (slow != nullptr) marked = slow->config->straggler().virtual_worker();
  return FigureHtml("Who waits where",
                    absl::StrCat("The first ", kDrawnSlowSteps, " steps of ", who,
                                 " and what they do meanwhile, in the first repeat. A box is a "
                                 "step, with its number; ",
                                 WaitSwatch(), "waits for weights."),
                    WorkerTimelinesSvg(drawn, kDrawnSlowSteps, marked));
}

std::string PartTable(const SyncPart& part) {
  const std::vector<std::vector<std::string>> table = SyncTable(part);
  return absl::StrCat(
      "<h3>All figures</h3>\n<p>Of bsp: speed over that of undisturbed bsp, repeat by repeat; of "
      "itself: over that of the same mode undisturbed; ",
      part.replay ? "bound: the most of that a mode can keep beside the slow worker; the "
                    "straggler's pace: the speed if that worker never waited; "
                  : "",
      "waits: part of the workers' time, and of the one that waited most. Staleness: mean and "
      "most.</p>\n",
      TableHtml(table, GroupsBegin(table)));
}

std::string PartHtml(const SyncPart& part, size_t repeats) {
  return absl::StrCat(
      "<h2>", XmlEscaped(part.title), "</h2>\n<p class=\"note\">", XmlEscaped(part.about), "</p>\n",
      ListHtml(SyncFindings(part)), Speed(part, repeats), Timelines(part),
      FigureHtml(
          "Time of each worker",
          absl::StrCat("Virtual workers from top to bottom, the part of their time in steps that "
                       "each ",
                       Swatch("background:var(--busy)"), "computes, ",
                       Swatch("background:var(--slow)"), "is made slow, ", WaitSwatch(),
                       "waits for weights. Of the first repeat."),
          WaitBarsSvg(part)),
      FigureHtml("Staleness",
                 "How many updates of a segment there were between the weights that a gradient is "
                 "of and its own update, as a part of all updates. Where an update waits for all, "
                 "it is 0. Of the first repeat.",
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
