// SPDX-License-Identifier: Apache-2.0
#include "experiment/sections/offload_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/xml_text.h"
#include "experiment/charts/report_page.h"
#include "experiment/charts/utilisation_svg.h"
#include "experiment/measures/figure_text.h"
#include "experiment/sections/offload_text.h"

namespace tug {
namespace {

constexpr size_t kDrawnSteps = 4;

std::string Cases() {
  std::string html = "<ul>\n";
  for (const OffloadKindRow& row : OffloadKinds()) {
    absl::StrAppend(&html, "<li><b>", row.name, "</b>: ", XmlEscaped(row.about), "</li>\n");
  }
  return html + "</ul>\n";
}

std::string Picture(const OffloadResults& results) {
  std::vector<DrawnDevice> devices;
  for (const OffloadRun& run : results.runs) {
    if (!run.error.empty()) continue;
    devices.push_back(
        {run.row().name,
         absl::StrFormat("%.1f ms a step, on %s", run.StepSeconds() * 1e3, run.device),
         &run.timeline});
  }
  return FigureHtml(
      "Utilisation over time",
      absl::StrCat("The part of each window of time in which the device is at work; dashed: the "
                   "mean over all measured steps. Beneath: what it is at, and what it stands still "
                   "for. Lines across are ends of steps.<br/>",
                   UtilisationLegend()),
      UtilisationSvg(devices, kDrawnSteps));
}

std::string Failed(const OffloadResults& results) {
  const std::vector<std::string> failures = OffloadFailures(results);
  return failures.empty() ? "" : "<h2>What failed</h2>\n" + ListHtml(failures);
}

std::string CasesHtml(const OffloadResults& results) {
  return absl::StrCat(
      "<h2>All figures</h2>\n<p>Medians over the measured steps, the device's: from the end of its "
      "work on one step to the end of its work on the next. BP bubble: it stands still after the "
      "backward pass, until servers have made the last weights of the step or the next forward "
      "pass begins. FP bubble: it stands still for weights from there on, to the last forward "
      "pass. Exposed: the worker's waiting for weights, to its steps. Loss: of the last "
      "step.</p>\n",
      TableHtml(OffloadTable(results), {}));
}

}  // namespace

std::string OffloadReportHtml(const OffloadResults& results) {
  return absl::StrCat(
      PageBegin("Optimizer state off the device"),
      "<p class=\"note\">ZeRO-Offload (Ren et al. 2021): one model and batch, with weights and "
      "AdamW's state on the device, with both in servers' memory on the host, and with the two "
      "bubbles of that hidden.</p>\n",
      SettingsHtml(results.settings, results.command), Cases(),
      results.runs.empty()
          ? "<p>Nothing has been measured yet.</p>\n"
          : absl::StrCat("<h2>What it costs</h2>\n", ListHtml(OffloadFindings(results)),
                         Picture(results), Failed(results), CasesHtml(results)),
      PageEnd());
}

}  // namespace tug
