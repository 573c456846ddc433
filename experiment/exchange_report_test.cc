#include "experiment/exchange_report.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "experiment/exchange_charts.h"
#include "experiment/exchange_sample.h"
#include "experiment/well_formed.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExchangeReport, IsOneWellFormedPageThatFetchesNothing) {
  const std::string page = ExchangeReportHtml(SampleExchangeResults());
  ExpectWellFormed(page);
  EXPECT_THAT(page, AllOf(HasSubstr("Which is fastest?"), HasSubstr("Step time"),
                          HasSubstr("The alpha-beta model"), HasSubstr("Bytes of each host"),
                          HasSubstr("optimizer state"), HasSubstr("jo&lt;b"),
                          HasSubstr("said &lt;no&gt;"), HasSubstr("What failed")));
  const std::string plain =
      absl::StrReplaceAll(page, {{"xmlns=\"http://www.w3.org/2000/svg\"", ""}});
  EXPECT_THAT(plain, AllOf(Not(HasSubstr("http")), Not(HasSubstr("<script")), Not(HasSubstr("nan")),
                           Not(HasSubstr("inf"))));
}

TEST(ExchangeReport, DrawsALineAndPointsForEachCaseOnALink) {
  const std::string svg = AlphaBetaSvg(SampleExchangeResults());
  size_t lines = 0, dots = 0;
  for (size_t at = 0; (at = svg.find("<path", at)) != std::string::npos; ++at) ++lines;
  for (size_t at = 0; (at = svg.find("<circle", at)) != std::string::npos; ++at) ++dots;
  EXPECT_EQ(lines, 2 * 2 * 11u) << "over sizes and over workers, overlapped too";
  EXPECT_EQ(dots, (2 * 11 - 1) + (11 - 1u)) << "one job failed";
}

TEST(ExchangeReport, IsAPageBeforeAnythingIsMeasuredAndOfWhatThereIs) {
  ExpectWellFormed(ExchangeReportHtml({}));
  ExchangeResults results = SampleExchangeResults();
  results.link_names = {"none"};
  std::erase_if(results.runs, [](const ExchangeRun& run) { return run.link != "none"; });
  EXPECT_EQ(AlphaBetaSvg(results), "");
  EXPECT_EQ(HostBytesSvg(results), "");
  const std::string none = ExchangeReportHtml(results);
  ExpectWellFormed(none);
  EXPECT_THAT(none, AllOf(HasSubstr("Step time"), Not(HasSubstr("What failed"))));
  for (ExchangeRun& run : results.runs) {
    run.figures = {};
    run.error = "it failed";
  }
  EXPECT_EQ(StepTimesSvg(results), "");
  EXPECT_EQ(MemorySvg(results), "");
  ExpectWellFormed(ExchangeReportHtml(results));
}

}  // namespace
}  // namespace tug
