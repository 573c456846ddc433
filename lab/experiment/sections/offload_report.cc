// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/offload_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/xml_text.h"
#include "lab/experiment/charts/report_page.h"
#include "lab/experiment/charts/utilisation_svg.h"
#include "lab/experiment/measures/figure_text.h"
#include "lab/experiment/sections/offload_text.h"

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
         absl::StrFormat("%.1f ms per step, on %s", run.StepSeconds() * 1e3, run.device),
         &run.timeline});
  }
  return FigureHtml(
      "Utilisation over time",
      "Share of each window of time in which the device is busy; dashed: mean over all measured "
      "steps. Below: what the device computes, and what it waits for when idle. Vertical lines are "
      "ends of steps.",
      UtilisationSvg(devices, kDrawnSteps));
}

std::string Failed(const OffloadResults& results) {
  const std::vector<std::string> failures = OffloadFailures(results);
  return failures.empty() ? "" : "<h2>Failed cases</h2>\n" + ListHtml(failures);
}

std::string CasesHtml(const OffloadResults& results) {
  return absl::StrCat(
      "<h2>All figures</h2>\n"
      "<p>Medians over the measured steps of the device, each from the end of its work on one step "
      "to the end of its work on the next. BP bubble: the device is idle after the backward pass, "
      "until servers have made the last weights of the step or the next forward pass begins. FP "
      "bubble: from then on, the device is idle waiting for weights, up to the last forward pass. "
      "Exposed: share of the worker's step time spent waiting for weights. Loss: of the last "
      "step.</p>\n",
      TableHtml(OffloadTable(results), {}));
}

}  // namespace

std::string OffloadReportHtml(const OffloadResults& results) {
  return absl::StrCat(PageBegin("Optimizer state off the device",
                                "What does it cost to keep the optimizer's state off the device?"),
                      AnswerHtml(OffloadAnswer(results)),
                      "<p class=\"note\">ZeRO-Offload (Ren et al. 2021): one model and batch; with "
                      "weights and AdamW's state on the device, with both in the memory of servers "
                      "on the host, and the same with its two bubbles hidden.</p>\n",
                      SettingsHtml(results.settings, results.command), Cases(),
                      results.runs.empty()
                          ? "<p>Nothing has been measured yet.</p>\n"
                          : absl::StrCat("<h2>Costs</h2>\n", ListHtml(OffloadFindings(results)),
                                         Picture(results), Failed(results), CasesHtml(results)),
                      PageEnd());
}

}  // namespace tug
