#include "experiment/sync_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/xml_text.h"
#include "experiment/report_page.h"
#include "experiment/sync_charts.h"
#include "experiment/worker_timeline_svg.h"

namespace tug {
namespace {

std::string ModeLegend(const SyncPart& part) {
  std::vector<std::string> names;
  for (const SyncCase& mode : ModesOf(part)) names.push_back(mode.name);
  return SeriesLegend(names);
}

std::string Timelines(const SyncPart& part) {
  std::vector<DrawnWorkers> drawn;
  for (const SyncRun& run : part.runs) {
    std::string note = absl::StrFormat("%.2f batches a second", run.BatchesPerSecond());
    if (const auto of_bsp = part.OfBsp(run)) {
      absl::StrAppendFormat(&note, ", %.2f of undisturbed bsp", *of_bsp);
    }
    drawn.push_back({run.mode.name, note, &run.timeline});
  }
  return FigureHtml(
      "Who waits where",
      absl::StrFormat(
          "The first %d iterations of a worker that is %g times as slow as the others %s and what "
          "they do meanwhile. A box is a step, with its number; %s waits for weights.",
          kDrawnSteps, part.slowdown, Swatch("background:var(--slow)"), WaitSwatch()),
      WorkerTimelinesSvg(drawn, kDrawnSteps, part.slow_virtual_worker));
}

std::string Table(const SyncPart& part) {
  const std::vector<std::vector<std::string>> table = ResultsTable(part);
  std::vector<size_t> groups;
  for (size_t i = 2; i < table.size(); ++i) {
    if (table[i][0] != table[i - 1][0]) groups.push_back(i);
  }
  return absl::StrCat(
      "<h3>All figures</h3>\n<p>Of bsp: speed over that of undisturbed bsp; of itself: over that "
      "of the same mode undisturbed; ",
      part.replay ? "bound: the most of that a mode can keep beside the slow worker; " : "",
      "waits: part of the workers' time, and of the one that waited most. Staleness: mean "
      "and most.</p>\n",
      TableHtml(table, groups));
}

}  // namespace

std::string SyncPartHtml(const SyncPart& part) {
  std::string html = absl::StrCat("<h2>", XmlEscaped(part.title), "</h2>\n<p class=\"note\">",
                                  XmlEscaped(part.about), "</p>\n");
  if (part.runs.empty()) return html + "<p>Nothing has been measured yet.</p>\n";
  absl::StrAppend(
      &html, ListHtml(Findings(part)),
      FigureHtml(
          "Speed",
          absl::StrFormat(
              "Batches (%d samples, a step of all virtual workers) a second. %s the most that a "
              "mode can keep of its undisturbed speed beside the slow worker.",
              part.batch_samples,
              Swatch("height:0;border-top:2px dashed var(--bound);margin-bottom:4px")),
          SpeedBarsSvg(part)),
      Timelines(part),
      FigureHtml(
          "Time of each worker",
          absl::StrCat("Virtual workers from top to bottom, the part of their time in steps that "
                       "each ",
                       Swatch("background:var(--busy)"), "computes, ",
                       Swatch("background:var(--slow)"), "is made slow, ", WaitSwatch(),
                       "waits for weights."),
          WaitBarsSvg(part)),
      FigureHtml(
          "Staleness",
          "How many updates of a segment there were between the weights that a gradient is of "
          "and its own update, as a part of all updates. Where an update waits for all, it is "
          "0.",
          StalenessSvg(part)),
      FigureHtml(
          "Loss",
          absl::StrCat(ModeLegend(part),
                       "<br/>Lines: training loss, a moving mean; dots: validation loss, the "
                       "last one of the whole split. A job step of local(H) is H batches."),
          LossPanelsSvg(part)),
      Table(part));
  return html;
}

std::string SyncReportHtml(const SyncResults& results) {
  std::string html = absl::StrCat(
      PageBegin("Synchronous and asynchronous training"),
      "<p class=\"note\">The same jobs under each sync policy, undisturbed and with workers that "
      "are made slow.</p>\n",
      SettingsHtml(results.settings, results.command));
  for (const SyncPart& part : results.parts) absl::StrAppend(&html, SyncPartHtml(part));
  if (results.parts.empty()) absl::StrAppend(&html, "<p>Nothing has been measured yet.</p>\n");
  return html + PageEnd();
}

}  // namespace tug
