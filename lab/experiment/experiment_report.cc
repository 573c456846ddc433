// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/experiment_report.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/charts/markdown_table.h"
#include "base/xml_text.h"
#include "lab/experiment/charts/error_panels.h"
#include "lab/experiment/charts/loss_panels.h"
#include "lab/experiment/charts/report_page.h"
#include "lab/experiment/charts/worker_timeline_svg.h"
#include "lab/experiment/results/answer.h"
#include "lab/experiment/results/verdicts.h"
#include "lab/experiment/sections/exchange_section.h"
#include "lab/experiment/sections/scheduling_section.h"
#include "lab/experiment/sections/sync_section.h"

namespace tug {
namespace {

constexpr size_t kTimelineSteps = 4;
constexpr char kLossName[] = "loss (nats per token)";

// Labels of all axes except those that a figure shows: the title of a panel. A single colour has no
// legend, so its value is here.
std::string PanelTitle(const ExperimentPlan& plan, const PlannedFigure& figure,
                       const PlannedCase& one) {
  return NamedValues(plan, one, [&](size_t axis) {
    const bool in_legend = axis == figure.by && plan.ValuesInCases(axis).size() > 1;
    return axis != figure.over && !in_legend;
  });
}

// Finds or adds the panel with a title. Panels are in the order of cases.
ErrorPanel& PanelOf(ErrorPicture& picture, const std::string& title, const ExperimentPlan& plan,
                    const PlannedFigure& figure) {
  for (ErrorPanel& panel : picture.panels) {
    if (panel.title == title) return panel;
  }
  ErrorPanel& panel = picture.panels.emplace_back(ErrorPanel{.title = title});
  if (!figure.by.has_value()) {
    panel.series.push_back({.color = SeriesColor(0)});
    return panel;
  }
  for (const size_t value : plan.ValuesInCases(*figure.by)) {
    panel.series.push_back(
        {.name = plan.axes[*figure.by].titles[value], .color = SeriesColor(value)});
  }
  return panel;
}

// Position of a value among those that are drawn. REQUIRES: `drawn` has it.
size_t PlaceOf(size_t value, const std::vector<size_t>& drawn) {
  return static_cast<size_t>(std::find(drawn.begin(), drawn.end(), value) - drawn.begin());
}

ErrorPicture PictureOf(const ExperimentResults& results, const PlannedFigure& figure) {
  const ExperimentPlan& plan = results.plan;
  const PlannedAxis& over = plan.axes[*figure.over];
  const std::vector<size_t> places = plan.ValuesInCases(*figure.over);
  std::vector<size_t> colors;
  if (figure.by.has_value()) colors = plan.ValuesInCases(*figure.by);
  ErrorPicture picture{.x_name = AxisHeading(over),
                       .y_name = MeasureHeading(*figure.measure),
                       .from_zero = figure.measure->from_zero,
                       .own_scales = figure.panels.has_value()};
  for (const size_t value : places) picture.x_labels.push_back(over.titles[value]);
  for (const PlannedCase& one : plan.cases) {
    std::vector<double> values = results.Values(one, *figure.measure);
    const auto spread = SpreadOfRepeats(values);
    if (!spread.has_value()) continue;
    ErrorPanel& panel = PanelOf(picture, PanelTitle(plan, figure, one), plan, figure);
    const size_t series = figure.by.has_value() ? PlaceOf(one.values[*figure.by], colors) : 0;
    const auto part =
        figure.part == nullptr ? std::nullopt : SpreadOfRepeats(results.Values(one, *figure.part));
    panel.series[series].points.push_back({.x = PlaceOf(one.values[*figure.over], places),
                                           .spread = *spread,
                                           .values = std::move(values),
                                           .part = part.has_value() ? part->median : 0});
  }
  for (ErrorPanel& panel : picture.panels) {
    for (ErrorSeries& series : panel.series) {
      std::sort(series.points.begin(), series.points.end(),
                [](const ErrorPoint& a, const ErrorPoint& b) { return a.x < b.x; });
    }
  }
  return picture;
}

// MB that all workers have pushed and pulled by the end of a step, payloads only.
std::function<double(uint64_t step, double seconds)> MegabytesBy(const RunFigures& figures) {
  std::vector<std::pair<uint64_t, double>> sums = {{0, 0.0}};  // in order of steps
  for (const StepPoint& point : figures.steps) {
    const auto bytes = static_cast<double>(point.pushed_bytes + point.pulled_bytes);
    sums.emplace_back(point.step, sums.back().second + bytes * 1e-6);
  }
  return [sums = std::move(sums)](uint64_t step, double /*seconds*/) {
    const auto after =
        std::upper_bound(sums.begin(), sums.end(), step,
                         [](uint64_t wanted, const auto& sum) { return wanted < sum.first; });
    return (after - 1)->second;
  };
}

// A row of panels for every combination of all axes except the first, whose values have one colour
// each.
std::string Losses(const ExperimentResults& results) {
  const ExperimentPlan& plan = results.plan;
  std::vector<Chart> panels;
  std::map<size_t, std::string> colors;  // number of a colour, and the value that has it
  for (size_t i = 0; i < results.courses.size(); ++i) {
    const auto& figures = results.courses[i].figures;
    if (!figures.has_value()) continue;
    const PlannedCase& one = plan.cases[i];
    const std::string title = PanelTitle(plan, {.over = 0}, one);
    auto row = std::find_if(panels.begin(), panels.end(),
                            [&](const Chart& panel) { return panel.title == title; });
    if (row == panels.end()) {
      for (const char* x : {"steps", "samples", "time (s)", "pushed and pulled (MB)"}) {
        panels.push_back(LossPanel(panels.size() % kLossPanels == 0 ? title : "", x));
      }
      panels[panels.size() - kLossPanels].y.name = kLossName;
      row = panels.end() - kLossPanels;
    }
    const size_t number = one.values.empty() ? 0 : one.values[0];
    const std::string name = plan.axes.empty() ? one.name : plan.axes[0].titles[number];
    colors.emplace(number, name);
    const auto add = [&](const std::function<double(uint64_t, double)>& x) {
      AddLosses(*figures, name, SeriesColor(number), x, *row++);
    };
    add([](uint64_t step, double) { return static_cast<double>(step); });
    add([&one](uint64_t step, double) { return SamplesAt(one.config, step); });
    add([](uint64_t, double seconds) { return seconds; });
    add(MegabytesBy(*figures));
  }
  std::vector<std::pair<std::string, std::string>> legend;
  for (const auto& [number, name] : colors) legend.emplace_back(name, SeriesColor(number));
  if (panels.empty()) return "";
  return FigureHtml("Losses",
                    "First repeat. Lines: moving mean of the training loss. Dots: validation "
                    "loss; the last dot is over the whole validation split.",
                    LossPanelsSvg(panels, legend));
}

std::string Timelines(const ExperimentResults& results) {
  std::vector<DrawnWorkers> drawn;
  for (size_t i = 0; i < results.courses.size(); ++i) {
    if (results.courses[i].timeline.empty()) continue;
    drawn.push_back({results.plan.cases[i].name, "", &results.courses[i].timeline});
  }
  return FigureHtml(
      "Steps and waits of each worker",
      absl::StrCat("The first ", kTimelineSteps,
                   " traced steps of the slowest worker, and the other workers during that time, "
                   "in the first repeat. A box is a step, with its number; ",
                   WaitSwatch(), "waiting for weights."),
      WorkerTimelinesSvg(drawn, kTimelineSteps, std::nullopt));
}

std::string Sections(const ExperimentResults& results) {
  std::string html;
  for (const int section : results.plan.file.sections()) {
    if (section == Experiment::LOSSES) html += Losses(results);
    if (section == Experiment::TIMELINES) html += Timelines(results);
    if (section == Experiment::SYNC) html += SyncSectionHtml(results);
    if (section == Experiment::EXCHANGE) html += ExchangeSectionHtml(results);
    if (section == Experiment::SCHEDULING) html += SchedulingHtml(results);
  }
  return html;
}

// Sections with tables or findings.
std::string SectionsMarkdown(const ExperimentResults& results) {
  std::string text;
  for (const int section : results.plan.file.sections()) {
    if (section == Experiment::SYNC) text += SyncSectionMarkdown(results);
    if (section == Experiment::EXCHANGE) text += ExchangeSectionMarkdown(results);
    if (section == Experiment::SCHEDULING) text += SchedulingMarkdown(results);
  }
  return text;
}

std::string Capitalized(std::string text) {
  if (!text.empty()) text[0] = absl::ascii_toupper(static_cast<unsigned char>(text[0]));
  return text;
}

std::string HeadingOf(const ExperimentPlan& plan) {
  return absl::StrCat(plan.file.name(), ": ", plan.file.question());
}

std::string FigureText(const ExperimentPlan& plan, const PlannedFigure& figure, bool has_bars) {
  const Measure& measure = *figure.measure;
  const std::string interval = IntervalMeaning(plan.repeats);
  std::string text = Capitalized(absl::StrCat(
      measure.meaning, "; ", measure.better == Better::kLower ? "lower" : "higher", " is better."));
  if (figure.part != nullptr && has_bars) {
    absl::StrAppend(&text, " Hatched: ", figure.part->title, ", ", figure.part->meaning, ".");
  }
  if (figure.panels.has_value()) absl::StrAppend(&text, " Each panel has its own scale.");
  if (interval.empty()) return text;
  return absl::StrCat(text, " Bars and large dots are medians; lines across them show ", interval,
                      "; small dots are single runs.");
}

std::string VerdictsHtml(const ExperimentResults& results) {
  std::string html;
  for (const VerdictTable& table : VerdictTables(results)) {
    absl::StrAppend(&html, "<h2>", XmlEscaped(Capitalized(table.title)), "</h2>\n<p>",
                    XmlEscaped(Capitalized(table.text)), "</p>\n", TableHtml(table.cells, {}));
  }
  return html;
}

std::string MeaningsHtml(const ExperimentResults& results) {
  std::vector<std::string> texts;
  for (const Measure* measure : results.plan.measures) {
    texts.push_back(absl::StrCat(measure->title, ": ", measure->meaning));
  }
  return ListHtml(texts);
}

// Commands of all runs, by case.
std::string CommandsHtml(const ExperimentResults& results) {
  std::string html;
  for (const PlannedCase& one : results.plan.cases) {
    std::vector<std::string> commands;
    for (const ExperimentRow& row : results.rows) {
      if (row.case_name == one.name) commands.push_back(row.origin.command);
    }
    html += DetailsHtml(one.name, commands);
  }
  return html;
}

std::string RawRowsHtml(const ExperimentResults& results) {
  std::string rows;
  for (const ExperimentRow& row : results.rows) absl::StrAppend(&rows, RowLine(row), "\n");
  if (rows.empty()) return "";
  return DetailsHtml(absl::StrCat("All ", results.rows.size(), " rows, one line of JSON each"),
                     {rows});
}

}  // namespace

std::vector<DrawnFigure> DrawFigures(const ExperimentResults& results) {
  std::vector<DrawnFigure> drawn;
  for (const PlannedFigure& figure : results.plan.figures) {
    const std::string title =
        figure.title.empty() ? Capitalized(figure.measure->title) : figure.title;
    const ErrorPicture picture = PictureOf(results, figure);
    drawn.push_back(
        {title, FigureText(results.plan, figure, HasBars(picture)), ErrorPanelsSvg(picture)});
  }
  return drawn;
}

std::string ExperimentReportHtml(const ExperimentResults& results) {
  std::string html = absl::StrCat(PageBegin(results.plan.file.name(), HeadingOf(results.plan)),
                                  AnswerHtml(AnswerOf(results)),
                                  SettingsHtml(ResultSettings(results), results.command));
  if (results.rows.empty()) return html + "<p>Nothing has been measured yet.</p>\n" + PageEnd();
  absl::StrAppend(&html, VerdictsHtml(results), ListHtml(Findings(results)));
  for (const DrawnFigure& figure : DrawFigures(results)) {
    absl::StrAppend(&html, FigureHtml(figure.title, XmlEscaped(figure.text), figure.svg));
  }
  absl::StrAppend(&html, Sections(results));
  const auto measures = MeasureTable(results);
  absl::StrAppend(&html, "<h2>All cases</h2>\n<p>Figures are ", SpreadMeaning(results.plan.repeats),
                  ".</p>\n", MeaningsHtml(results), TableHtml(measures, GroupsBegin(measures)));
  const auto baseline = BaselineTable(results);
  if (!baseline.empty()) {
    absl::StrAppend(&html, "<h2>Compared with the baseline</h2>\n<p>",
                    XmlEscaped(BaselineText(results)), "</p>\n",
                    TableHtml(baseline, GroupsBegin(baseline)));
  }
  const std::vector<std::string> failures = Failures(results);
  if (!failures.empty()) absl::StrAppend(&html, "<h2>Failed runs</h2>\n", ListHtml(failures));
  absl::StrAppend(&html,
                  "<h2>Commands</h2>\n<p>The command of every run, by case. Click a command to "
                  "select it.</p>\n",
                  CommandsHtml(results), "<h2>Raw rows</h2>\n", RawRowsHtml(results));
  return html + PageEnd();
}

std::string ExperimentReportMarkdown(const ExperimentResults& results,
                                     const std::vector<std::string>& pictures) {
  const std::vector<DrawnFigure> figures = DrawFigures(results);
  const std::string answer = AnswerOf(results);
  std::string text =
      absl::StrCat("# ", HeadingOf(results.plan), "\n\n",
                   answer.empty() ? "" : absl::StrCat("**Answer:** ", answer, "\n\n"), "    ",
                   results.command, "\n\n");
  for (const auto& [name, value] : ResultSettings(results)) {
    absl::StrAppend(&text, "- **", name, "**: ", value, "\n");
  }
  text += "\n";
  for (const std::string& finding : Findings(results)) absl::StrAppend(&text, "- ", finding, "\n");
  for (const VerdictTable& table : VerdictTables(results)) {
    absl::StrAppend(&text, "\n## ", Capitalized(table.title), "\n\n", Capitalized(table.text),
                    "\n\n", MarkdownTable(table.cells));
  }
  for (size_t i = 0; i < pictures.size() && i < figures.size(); ++i) {
    if (figures[i].svg.empty()) continue;
    absl::StrAppend(&text, "\n![", figures[i].title, "](", pictures[i], ")\n");
  }
  absl::StrAppend(&text, "\n", SectionsMarkdown(results), "## All cases\n\n",
                  MarkdownTable(MeasureTable(results)), "\n");
  const auto baseline = BaselineTable(results);
  if (!baseline.empty()) {
    absl::StrAppend(&text, "## Compared with the baseline\n\n", BaselineText(results), "\n\n",
                    MarkdownTable(baseline), "\n");
  }
  const std::vector<std::string> failures = Failures(results);
  if (failures.empty()) return text;
  text += "## Failed runs\n\n";
  for (const std::string& failure : failures) absl::StrAppend(&text, "- ", failure, "\n");
  return text;
}

}  // namespace tug
