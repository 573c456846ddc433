#include "experiment/compression_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiment/compression_charts.h"
#include "experiment/report_page.h"

namespace tug {
namespace {

std::string Verdicts(const CompressionResults& results) {
  return absl::StrCat(
      "<h2>Does it pay?</h2>\n",
      absl::StrFormat(
          "<p>On each link: FP32's step time over the codec's. A codec pays where its steps are at "
          "least %.0f%% shorter. Learning: final validation loss over FP32's; as well: at most %g "
          "more.</p>\n",
          kLeastGain * 100, results.loss_margin),
      TableHtml(VerdictTable(results), {}), ListHtml(Findings(results)));
}

std::string LinkFigures(const CompressionResults& results) {
  const std::vector<std::vector<std::string>> table = LinkTable(results);
  std::vector<size_t> groups;
  for (size_t i = 2; i < table.size(); ++i) {
    if (table[i][0] != table[i - 1][0]) groups.push_back(i);
  }
  return absl::StrCat(
      "<h2>On links</h2>\n",
      FigureHtml("Step time",
                 absl::StrCat("The median of the measured steps; ", WaitSwatch(),
                              "waits for weights: communication that computing does not hide, the "
                              "mean over the workers. Every link has an axis of its own."),
                 StepTimesSvg(results)),
      FigureHtml("Bytes of a step",
                 "What all workers push and pull in a step, without headers of messages. It does "
                 "not depend on the link.",
                 StepBytesSvg(results)),
      "<h3>All figures on links</h3>\n<p>Of a step. Speed-up: FP32's step time over the codec's. "
      "Encode: of a worker; decode: of a server, all lanes together, with summing; \"-\": not "
      "measured. Pushed, pulled: payloads of all workers, in a step in which the codec encodes. "
      "Sockets: bytes that workers (push) and servers (pull) gave to sockets, headers included, as "
      "a "
      "part of FP32's; \"-\": they went through shared memory.</p>\n",
      TableHtml(table, groups));
}

std::string LearningFigures(const CompressionResults& results) {
  std::vector<std::string> names;
  for (const CodecCase& codec : results.codecs) names.push_back(codec.name);
  return absl::StrCat(
      "<h2>Learning</h2>\n",
      FigureHtml(
          "Loss",
          absl::StrCat(SeriesLegend(names),
                       "<br/>Lines: training loss, a moving mean; dots: validation loss, the "
                       "last one of the whole split. Of each codec the learning rate that "
                       "ended best."),
          LearningLossesSvg(results)),
      "<h3>All trainings</h3>\n<p>Pushed, pulled: payloads of all workers in the whole training, "
      "with what is pushed as FP32 in a codec's warm-up. Over fp32: of the learning rate that "
      "ended "
      "best, against FP32's best.</p>\n",
      TableHtml(LearningTable(results), {}));
}

}  // namespace

std::string CompressionReportHtml(const CompressionResults& results) {
  const bool empty = results.links.empty() && results.learning.empty();
  return absl::StrCat(
      PageBegin("Compression of gradients and weights"),
      "<p class=\"note\">One job with several codecs: how much is sent, whether steps become "
      "shorter, and what is learned in them.</p>\n",
      SettingsHtml(results.settings, results.command),
      empty ? "<p>Nothing has been measured yet.</p>\n" : Verdicts(results),
      results.links.empty() ? "" : LinkFigures(results),
      results.learning.empty() ? "" : LearningFigures(results), PageEnd());
}

}  // namespace tug
