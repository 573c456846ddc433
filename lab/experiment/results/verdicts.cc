// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/verdicts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lab/experiment/measures/figure_text.h"

namespace tug {
namespace {

bool IsFinite(const std::optional<double>& value) {
  return value.has_value() && std::isfinite(*value);
}

// The largest ratio or difference that is good enough; the smallest if higher is better.
double LimitOf(const PlannedVerdict& verdict) {
  const double margin =
      verdict.measure->better == Better::kLower ? -verdict.margin : verdict.margin;
  return verdict.measure->comparing == Comparing::kRatio ? 1 + margin : margin;
}

bool IsEnough(const PlannedVerdict& verdict, double compared) {
  return verdict.measure->better == Better::kLower ? compared <= LimitOf(verdict)
                                                   : compared >= LimitOf(verdict);
}

Answer AnswerOf(const PlannedVerdict& verdict, const CaseVerdict& one) {
  if (one.without_value > 0) return Answer::kNo;
  const bool low = IsEnough(verdict, one.compared->spread.low);
  const bool high = IsEnough(verdict, one.compared->spread.high);
  if (low != high) return Answer::kNotClear;
  return low ? Answer::kYes : Answer::kNo;
}

// The case with the best median among a case and those that differ from it only in `best_over`.
size_t BestOf(const ExperimentResults& results, const PlannedVerdict& verdict, size_t number) {
  if (!verdict.best_over.has_value()) return number;
  const std::vector<PlannedCase>& cases = results.plan.cases;
  const double sign = verdict.measure->better == Better::kLower ? 1 : -1;
  std::optional<size_t> best;
  double least = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    std::vector<size_t> values = cases[i].values;
    values[*verdict.best_over] = cases[number].values[*verdict.best_over];
    if (values != cases[number].values) continue;
    const auto spread = SpreadOfRepeats(results.Values(cases[i], *verdict.measure));
    if (!spread.has_value() || (best.has_value() && sign * spread->median >= least)) continue;
    best = i;
    least = sign * spread->median;
  }
  return best.value_or(number);
}

// With `best_over`, the baseline of any case that differs only in it: the case's own value may have
// none.
std::optional<size_t> BaselineOf(const ExperimentPlan& plan, const PlannedVerdict& verdict,
                                 size_t number) {
  if (!verdict.best_over.has_value()) return plan.BaselineOf(number);
  for (size_t i = 0; i < plan.cases.size(); ++i) {
    std::vector<size_t> values = plan.cases[i].values;
    values[*verdict.best_over] = plan.cases[number].values[*verdict.best_over];
    if (values != plan.cases[number].values) continue;
    if (const auto found = plan.BaselineOf(i); found.has_value()) return found;
  }
  return std::nullopt;
}

size_t WithoutValue(const ExperimentResults& results, const Measure& measure, size_t number,
                    size_t baseline) {
  size_t count = 0;
  for (uint32_t repeat = 0; repeat < results.plan.repeats; ++repeat) {
    const ExperimentRow* one = results.Find(results.plan.cases[number], repeat);
    const ExperimentRow* other = results.Find(results.plan.cases[baseline], repeat);
    if (one == nullptr || other == nullptr || !one->error.empty()) continue;
    count += IsFinite(other->Find(measure.name)) && !IsFinite(one->Find(measure.name));
  }
  return count;
}

// "link=100mbit, workers=4".
std::string NamedLabels(const ExperimentPlan& plan, const std::vector<size_t>& axes,
                        const std::vector<size_t>& values) {
  return absl::StrJoin(axes, ", ", [&](std::string* text, size_t axis) {
    absl::StrAppend(text, plan.axes[axis].name, "=", plan.axes[axis].labels[values[axis]]);
  });
}
// "100mbit, 4".
std::string Labels(const ExperimentPlan& plan, const std::vector<size_t>& axes,
                   const std::vector<size_t>& values) {
  return absl::StrJoin(axes, ", ", [&](std::string* text, size_t axis) {
    absl::StrAppend(text, plan.axes[axis].titles[values[axis]]);
  });
}

std::string LimitText(const PlannedVerdict& verdict) {
  const bool lower = verdict.measure->better == Better::kLower;
  if (verdict.measure->comparing == Comparing::kRatio) {
    return absl::StrFormat("%s %g times as much", lower ? "at most" : "at least", LimitOf(verdict));
  }
  const bool worse = verdict.margin < 0;
  return absl::StrFormat("%s %g %s", worse ? "at most" : "at least", std::abs(verdict.margin),
                         worse == lower ? "more" : "less");
}

std::string CellText(const ExperimentResults& results, const PlannedVerdict& verdict,
                     const CaseVerdict& one) {
  const Measure& measure = *verdict.measure;
  const ExperimentPlan& plan = results.plan;
  const auto spread = SpreadOfRepeats(results.Values(plan.cases[one.number], measure));
  std::string of = spread.has_value() ? NumberText(spread->median, measure.digits) : kNoFigure;
  if (verdict.best_over.has_value()) {
    absl::StrAppend(&of, " with ",
                    NamedLabels(plan, {*verdict.best_over}, plan.cases[one.number].values));
  }
  if (!one.baseline.has_value()) return spread.has_value() ? of : kNoFigure;
  if (!one.answer.has_value()) return kNoFigure;
  std::string text = *one.answer == Answer::kYes  ? verdict.yes
                     : *one.answer == Answer::kNo ? verdict.no
                                                  : "not clear";
  if (one.compared.has_value()) {
    absl::StrAppend(&text, ": ", ComparedText(one.compared->spread, measure),
                    one.compared->spread.count < 2 ? " (one run)" : "", ", ", of);
  }
  if (one.without_value > 0) {
    absl::StrAppendFormat(&text, "; no finite value in %d of %d repeats", one.without_value,
                          plan.repeats);
  }
  return text;
}

VerdictTable TableOf(const ExperimentResults& results, const PlannedVerdict& verdict) {
  const ExperimentPlan& plan = results.plan;
  const std::vector<size_t> in_lines = plan.BaselineAxes();
  std::vector<size_t> in_columns;
  for (size_t axis = 0; axis < plan.axes.size(); ++axis) {
    if (axis == verdict.best_over) continue;
    if (std::find(in_lines.begin(), in_lines.end(), axis) != in_lines.end()) continue;
    in_columns.push_back(axis);
  }
  const auto& where = plan.file.baseline().where();
  VerdictTable table{.title = absl::StrCat(verdict.yes, ", or ", verdict.no),
                     .text = absl::StrCat(
                         verdict.measure->title, " compared with that of ",
                         absl::StrJoin(where.begin(), where.end(), ", "), ", repeat by repeat: \"",
                         verdict.yes, "\" if it is ", LimitText(verdict),
                         " over the whole interval in brackets, \"", verdict.no,
                         "\" if nowhere in it, otherwise not clear; one run has no interval. The "
                         "last number is the median of the case, in ",
                         verdict.measure->unit, ".")};
  table.cells = {{absl::StrJoin(in_lines, ", ", [&](std::string* text, size_t axis) {
    absl::StrAppend(text, AxisHeading(plan.axes[axis]));
  })}};
  const auto line_of = [&](const std::string& name) -> std::vector<std::string>& {
    for (size_t i = 1; i < table.cells.size(); ++i) {
      if (table.cells[i][0] == name) return table.cells[i];
    }
    return table.cells.emplace_back(std::vector<std::string>{name});
  };
  for (const CaseVerdict& one : VerdictsOf(results, verdict)) {
    const std::vector<size_t>& values = plan.cases[one.number].values;
    const std::string name = NamedLabels(plan, in_columns, values);
    const std::string heading = name.empty() ? MeasureHeading(*verdict.measure) : name;
    std::vector<std::string>& headings = table.cells[0];
    const size_t column =
        std::find(headings.begin() + 1, headings.end(), heading) - headings.begin();
    if (column == headings.size()) headings.push_back(heading);
    std::vector<std::string>& line = line_of(Labels(plan, in_lines, values));
    line.resize(std::max(line.size(), column + 1), kNoFigure);
    line[column] = CellText(results, verdict, one);
  }
  for (auto& line : table.cells) line.resize(table.cells[0].size(), kNoFigure);
  return table;
}

}  // namespace

std::vector<CaseVerdict> VerdictsOf(const ExperimentResults& results,
                                    const PlannedVerdict& verdict) {
  std::vector<CaseVerdict> verdicts;
  for (size_t i = 0; i < results.plan.cases.size(); ++i) {
    if (BestOf(results, verdict, i) != i) continue;
    CaseVerdict one{.number = i, .baseline = BaselineOf(results.plan, verdict, i)};
    if (one.baseline.has_value()) {
      one.baseline = BestOf(results, verdict, *one.baseline);
      one.compared = results.CompareWith(i, *one.baseline, *verdict.measure);
      one.without_value = WithoutValue(results, *verdict.measure, i, *one.baseline);
      if (one.compared.has_value() || one.without_value > 0) one.answer = AnswerOf(verdict, one);
    }
    verdicts.push_back(one);
  }
  return verdicts;
}

std::vector<VerdictTable> VerdictTables(const ExperimentResults& results) {
  std::vector<VerdictTable> tables;
  for (const PlannedVerdict& verdict : results.plan.verdicts) {
    const std::vector<CaseVerdict> verdicts = VerdictsOf(results, verdict);
    const bool any = std::any_of(verdicts.begin(), verdicts.end(),
                                 [](const CaseVerdict& one) { return one.answer.has_value(); });
    if (any) tables.push_back(TableOf(results, verdict));
  }
  return tables;
}

}  // namespace tug
