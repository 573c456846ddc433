#include "experiment/exchange_report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiment/exchange_charts.h"
#include "experiment/exchange_text.h"
#include "experiment/report_page.h"

namespace tug {
namespace {

std::string Cases() {
  return "<p>servers:P: a parameter server of P processes, each on a host of its own. mixed:K: "
         "servers beside the workers and on K hosts more, segments dealt by BytePS. ring and "
         "halving_doubling: all-reduce by a server beside each worker, which has all of the "
         "state. zero1, zero2, zero3: a server beside each worker has its part of the state; from "
         "zero2 on workers let go of gradients, with zero3 of weights.</p>\n";
}

std::string Failed(const ExchangeResults& results) {
  const std::vector<std::string> failures = Failures(results);
  if (failures.empty()) return "";
  return "<h2>What failed</h2>\n" + ListHtml(failures);
}

std::string Overview(const ExchangeResults& results) {
  return absl::StrCat("<h2>Which is fastest?</h2>\n", Cases(),
                      "<p>Milliseconds a step, the median of those measured.</p>\n",
                      TableHtml(StepTable(results), {}), ListHtml(Findings(results)));
}

std::string StepTimeText(const ExchangeResults& results) {
  const std::string measured = "The median of the measured steps.";
  const bool has_links =
      std::any_of(results.runs.begin(), results.runs.end(),
                  [](const ExchangeRun& run) { return run.bits_per_second > 0; });
  if (!has_links) return measured;
  return measured +
         " Full line, and the first figure behind it: the alpha-beta model, without computing, one "
         "phase after the other (push, then pull; reduce-scatter, then all-gather). Dashed line, "
         "and the second: the same where they overlap, so that links are busy both ways at once.";
}

std::string Pictures(const ExchangeResults& results) {
  return absl::StrCat(
      FigureHtml("Step time", StepTimeText(results), StepTimesSvg(results)),
      FigureHtml("The alpha-beta model",
                 "Lines: the model's step, alpha a message as the settings say and the link's "
                 "rate, computing not counted; dashed: push and pull overlap. Dots: measured. Both "
                 "axes are logarithmic. Lines that lie on one another are named one under another.",
                 AlphaBetaSvg(results)),
      FigureHtml("Bytes of each host",
                 absl::StrCat("What each host sent over its link in a step: a bar for each host ",
                              Swatch("background:var(--busy)"),
                              "of a server alone, in the case's colour of a worker (and the "
                              "server beside it). All headers are counted, and the first weights. "
                              "Dashed: the formula's busiest host, payload alone."),
                 HostBytesSvg(results)),
      FigureHtml("Memory",
                 absl::StrCat(MemoryLegend(),
                              "<br/>What the worker, and the server, that holds most holds for "
                              "training, the most of each kind at a time; activations are not "
                              "among them. Dashed: the documented formulas of workers and "
                              "servers."),
                 MemorySvg(results)));
}

std::string Tables(const ExchangeResults& results) {
  const std::vector<std::vector<std::string>> table = RunTable(results);
  std::vector<size_t> groups;
  for (size_t i = 2; i < table.size(); ++i) {
    if (table[i][0] != table[i - 1][0] || table[i][1] != table[i - 1][1]) groups.push_back(i);
  }
  const std::vector<std::vector<std::string>> memory = MemoryTable(results);
  return absl::StrCat(
      "<h2>All figures</h2>\n<p>Of a step. Range: of the measured steps. Alpha-beta: one phase "
      "after "
      "the other; overlapped: links busy both ways at once; x: measured over it. Busiest link: of "
      "all hosts, in its busier "
      "direction, headers included; by formula: payload.</p>\n",
      TableHtml(table, groups),
      memory.size() < 2
          ? ""
          : absl::StrCat(
                "<h3>Memory</h3>\n<p>MB, of the worker and the server that hold most. Lectures: "
                "of a worker with the server beside it, FP32: 16 Psi, 8 Psi + 8 Psi / N, 4 Psi + "
                "12 Psi / N, 16 Psi / N; of a parameter server's worker alone 8 Psi.</p>\n",
                TableHtml(memory, {})));
}

}  // namespace

std::string ExchangeReportHtml(const ExchangeResults& results) {
  return absl::StrCat(
      PageBegin("Parameter servers, all-reduce and ZeRO"),
      "<p class=\"note\">One job with every way to make weights of gradients: how long a step "
      "takes, what each host sends, what each worker holds, and what the alpha-beta model says.</p>"
      "\n",
      SettingsHtml(results.settings, results.command),
      results.runs.empty()
          ? "<p>Nothing has been measured yet.</p>\n"
          : absl::StrCat(Overview(results), Failed(results), Pictures(results), Tables(results)),
      PageEnd());
}

}  // namespace tug
