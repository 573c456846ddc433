// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/experiment_results.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lab/experiment/measures/figure_text.h"
#include "lab/experiment/measures/link_plan.h"

namespace tug {
namespace {

using Table = std::vector<std::vector<std::string>>;

// Headings of the axes, then a row with the labels of each case.
Table CaseLines(const ExperimentPlan& plan) {
  Table table(1);
  for (const PlannedAxis& axis : plan.axes) table[0].push_back(AxisHeading(axis));
  if (plan.axes.empty()) table[0].push_back("case");
  for (const PlannedCase& one : plan.cases) {
    std::vector<std::string>& line = table.emplace_back();
    for (size_t axis = 0; axis < plan.axes.size(); ++axis) {
      line.push_back(plan.axes[axis].titles[one.values[axis]]);
    }
    if (plan.axes.empty()) line.push_back(one.name);
  }
  return table;
}

std::string ComparisonText(const PairedComparison& compared, const Measure& measure) {
  const std::string text = ComparedText(compared.spread, measure);
  const size_t count = compared.spread.count;
  if (count < 2) return text;
  return absl::StrCat(text,
                      absl::StrFormat("; %d/%d, p %.2g", compared.better, count, compared.p_value));
}

// All distinct texts, in order.
template <typename Of>
std::string Each(const ExperimentResults& results, const Of& of) {
  std::set<std::string> seen;
  std::vector<std::string> texts;
  for (const ExperimentRow& row : results.rows) {
    const std::string text = of(row);
    if (!text.empty() && seen.insert(text).second) texts.push_back(text);
  }
  return texts.empty() ? "unknown" : absl::StrJoin(texts, "; ");
}

std::string PlacesText(const ExperimentPlan& plan) {
  std::set<std::string> seen;
  std::vector<std::string> texts;
  for (const PlannedCase& one : plan.cases) {
    std::string text = "processes on this machine";
    if (HasLinks(one.place)) {
      text = absl::StrCat("deploy/testbed hosts on one machine, links of ",
                          one.place.testbed().link());
    } else if (one.place.has_hosts()) {
      text = absl::StrCat("hosts in ", one.place.hosts().file(), ", over ssh");
    } else if (one.place.has_slurm()) {
      text = "a Slurm allocation";
    }
    if (const double rate = one.config.comm().impair().rate_mbit(); rate > 0) {
      absl::StrAppendFormat(&text, ", at most %g Mbit/s sent by each process", rate);
    }
    if (seen.insert(text).second) texts.push_back(text);
  }
  return absl::StrJoin(texts, "; ");
}

std::string WhenText(const ExperimentResults& results) {
  std::string first, last;
  for (const ExperimentRow& row : results.rows) {
    const std::string& at = row.origin.started;
    if (first.empty() || at < first) first = at;
    if (last.empty() || at > last) last = at;
  }
  return first.empty() ? "no run yet" : (first == last ? first : absl::StrCat(first, " to ", last));
}

}  // namespace

const ExperimentRow* ExperimentResults::Find(const PlannedCase& one, uint32_t repeat) const {
  for (const ExperimentRow& row : rows) {
    if (row.repeat == repeat && row.case_name == one.name) return &row;
  }
  return nullptr;
}

std::vector<double> ExperimentResults::Values(const PlannedCase& one,
                                              const Measure& measure) const {
  std::vector<double> values;
  for (const ExperimentRow& row : rows) {
    if (row.case_name != one.name) continue;
    const std::optional<double> value = row.Find(measure.name);
    if (value.has_value()) values.push_back(*value);
  }
  return values;
}

std::optional<RepeatSpread> ExperimentResults::SpreadOf(const PlannedCase& one,
                                                        const char* measure) const {
  return SpreadOfRepeats(Values(one, *FindMeasure(measure)));
}

std::optional<PairedComparison> ExperimentResults::Compare(size_t number,
                                                           const Measure& measure) const {
  const std::optional<size_t> baseline = plan.BaselineOf(number);
  if (!baseline.has_value()) return std::nullopt;
  return CompareWith(number, *baseline, measure);
}

std::optional<PairedComparison> ExperimentResults::CompareWith(size_t number, size_t other_number,
                                                               const Measure& measure) const {
  std::vector<std::pair<double, double>> pairs;
  for (uint32_t repeat = 0; repeat < plan.repeats; ++repeat) {
    const ExperimentRow* one = Find(plan.cases[number], repeat);
    const ExperimentRow* other = Find(plan.cases[other_number], repeat);
    if (one == nullptr || other == nullptr) continue;
    const std::optional<double> value = one->Find(measure.name), base = other->Find(measure.name);
    if (value.has_value() && base.has_value()) pairs.emplace_back(*value, *base);
  }
  return ComparePairs(pairs, measure.comparing, measure.better == Better::kLower);
}

size_t ExperimentResults::Ended(const PlannedCase& one) const {
  return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [&](const ExperimentRow& row) {
    return row.case_name == one.name && row.error.empty();
  }));
}

size_t ExperimentResults::Failed() const {
  return static_cast<size_t>(std::count_if(
      rows.begin(), rows.end(), [](const ExperimentRow& row) { return !row.error.empty(); }));
}

size_t ExperimentResults::Missing() const {
  size_t missing = 0;
  for (const PlannedCase& one : plan.cases) {
    for (uint32_t repeat = 0; repeat < plan.repeats; ++repeat) {
      missing += Find(one, repeat) == nullptr;
    }
  }
  return missing;
}

std::string NamedValues(const ExperimentPlan& plan, const PlannedCase& one,
                        absl::FunctionRef<bool(size_t axis)> of) {
  std::vector<std::string> parts;
  for (size_t axis = 0; axis < plan.axes.size(); ++axis) {
    if (!of(axis)) continue;
    parts.push_back(
        absl::StrCat(plan.axes[axis].name, " ", plan.axes[axis].titles[one.values[axis]]));
  }
  return absl::StrJoin(parts, ", ");
}

std::string LabelsSetting(const ExperimentPlan& plan, const PlannedCase& one,
                          std::span<const char* const> beginnings) {
  std::vector<std::string> labels;
  for (size_t axis = 0; axis < plan.axes.size(); ++axis) {
    if (!SetsAny(plan.axes[axis], beginnings)) continue;
    labels.push_back(plan.axes[axis].titles[one.values[axis]]);
  }
  return absl::StrJoin(labels, ", ");
}

std::string ComparedText(const RepeatSpread& spread, const Measure& measure) {
  const auto number = [&](double value) {
    return measure.comparing == Comparing::kRatio ? absl::StrFormat("%.3f", value)
                                                  : absl::StrFormat("%+.*f", measure.digits, value);
  };
  if (spread.count < 2) return number(spread.median);
  return absl::StrCat(number(spread.median), " [", number(spread.low), ", ", number(spread.high),
                      "]");
}

std::string SpreadText(const std::optional<RepeatSpread>& spread, int digits) {
  if (!spread.has_value()) return kNoFigure;
  std::string text = NumberText(spread->median, digits);
  if (spread->count < 2) return text;
  return absl::StrCat(text, " [", NumberText(spread->low, digits), ", ",
                      NumberText(spread->high, digits), "]");
}

Table MeasureTable(const ExperimentResults& results) {
  const ExperimentPlan& plan = results.plan;
  Table table = CaseLines(plan);
  for (const Measure* measure : plan.measures) table[0].push_back(MeasureHeading(*measure));
  table[0].push_back("runs");
  for (size_t i = 0; i < plan.cases.size(); ++i) {
    const PlannedCase& one = plan.cases[i];
    for (const Measure* measure : plan.measures) {
      table[i + 1].push_back(
          SpreadText(SpreadOfRepeats(results.Values(one, *measure)), measure->digits));
    }
    table[i + 1].push_back(absl::StrCat(results.Ended(one)));
  }
  return WithoutEmptyColumns(table);
}

Table BaselineTable(const ExperimentResults& results) {
  const ExperimentPlan& plan = results.plan;
  if (!plan.file.has_baseline()) return {};
  Table table = CaseLines(plan);
  for (const Measure* measure : plan.measures) {
    table[0].push_back(measure->comparing == Comparing::kRatio
                           ? absl::StrCat(measure->title, " (ratio)")
                           : absl::StrCat(measure->title, " (difference, ", measure->unit, ")"));
  }
  Table kept = {table[0]};
  for (size_t i = 0; i < plan.cases.size(); ++i) {
    if (!plan.BaselineOf(i).has_value()) continue;
    for (const Measure* measure : plan.measures) {
      const auto compared = results.Compare(i, *measure);
      table[i + 1].push_back(compared.has_value() ? ComparisonText(*compared, *measure)
                                                  : kNoFigure);
    }
    kept.push_back(table[i + 1]);
  }
  return kept.size() > 1 ? WithoutEmptyColumns(kept) : Table{};
}

std::vector<std::string> Findings(const ExperimentResults& results) {
  std::vector<std::string> findings;
  if (results.plan.cases.size() < 2) return findings;
  for (const Measure* measure : results.plan.measures) {
    const double sign = measure->better == Better::kLower ? 1 : -1;
    const PlannedCase* best = nullptr;
    RepeatSpread least;
    for (const PlannedCase& one : results.plan.cases) {
      const auto spread = SpreadOfRepeats(results.Values(one, *measure));
      if (!spread.has_value()) continue;
      if (best != nullptr && sign * spread->median >= sign * least.median) continue;
      best = &one;
      least = *spread;
    }
    if (best == nullptr) continue;
    size_t near = 0, equal = 0;
    for (const PlannedCase& one : results.plan.cases) {
      const auto spread = SpreadOfRepeats(results.Values(one, *measure));
      if (!spread.has_value() || &one == best) continue;
      equal += spread->median == least.median;
      near += spread->low <= least.high && least.low <= spread->high;
    }
    if (equal + 1 == results.plan.cases.size()) continue;  // all cases are equal
    std::string text = absl::StrCat(MeasureHeading(*measure), ": ", sign > 0 ? "lowest" : "highest",
                                    " with ", best->name, ", ", SpreadText(least, measure->digits));
    if (near > 0 && least.count > 1) {
      absl::StrAppend(&text, "; ", near,
                      near == 1 ? " other case overlaps" : " other cases overlap", " with it");
    }
    findings.push_back(text);
  }
  return findings;
}

std::vector<std::string> Failures(const ExperimentResults& results) {
  std::vector<std::string> failures;
  for (const ExperimentRow& row : results.rows) {
    if (row.error.empty()) continue;
    failures.push_back(absl::StrCat(row.case_name, ", repeat ", row.repeat + 1, ": ", row.error));
  }
  return failures;
}

std::string RunsText(uint64_t cases, uint64_t repeats) {
  return absl::StrCat(cases, cases == 1 ? " case, " : " cases, ", repeats,
                      repeats == 1 ? " repeat each" : " repeats each");
}

std::vector<std::pair<std::string, std::string>> ResultSettings(const ExperimentResults& results) {
  const ExperimentPlan& plan = results.plan;
  std::vector<std::pair<std::string, std::string>> settings = {
      {"runs", absl::StrFormat("%s, seeds %d to %d; %d runs have ended, %d of them failed",
                               RunsText(plan.cases.size(), plan.repeats), plan.first_seed,
                               plan.seed(plan.repeats - 1), plan.runs() - results.Missing(),
                               results.Failed())},
      {"where", PlacesText(plan)},
      {"figures", SpreadMeaning(plan.repeats)},
      {"machine", Each(results, [](const ExperimentRow& row) { return row.origin.machine; })},
      {"program", Each(results,
                       [](const ExperimentRow& row) {
                         return absl::StrCat(row.origin.version, ", build ", row.origin.build);
                       })},
      {"commit", Each(results, [](const ExperimentRow& row) { return row.origin.commit; })},
      {"when", WhenText(results)}};
  if (plan.file.warm_up_steps() > 0) {
    settings.push_back(
        {"warm-up",
         absl::StrCat("the first ", plan.file.warm_up_steps(),
                      " steps of every job are not measured (with local steps, as many batches)")});
  }
  for (const Condition& condition : plan.file.when()) {
    if (!condition.has_warm_up_steps()) continue;
    settings.push_back({"warm-up with " + absl::StrJoin(condition.where(), ", "),
                        absl::StrCat("the first ", condition.warm_up_steps(), " steps")});
  }
  return settings;
}

std::string BaselineText(const ExperimentResults& results) {
  const auto& where = results.plan.file.baseline().where();
  return absl::StrCat(
      "Each case compared with the case with ", absl::StrJoin(where.begin(), where.end(), ", "),
      " and otherwise the same values, repeat by repeat (same seed, run shortly after one "
      "another): ratios; for losses and shares differences. Then the number of repeats in which "
      "the case is better, and the p value of a two-sided sign test.");
}

}  // namespace tug
