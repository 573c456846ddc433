// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/answer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "config/sync_mode.h"
#include "lab/experiment/measures/figure_text.h"
#include "lab/experiment/results/verdicts.h"

namespace tug {
namespace {

constexpr size_t kListedSettings = 3, kListedNames = 2;
constexpr double kNoRatio = 0.005;  // a ratio this near to 1 is no difference

struct Contender {
  size_t number = 0;  // of the case
  std::string name;
  RepeatSpread value;
};

// Cases that differ only on the compared axes.
struct Setting {
  std::string title;                  // "link 100mbit"; empty: the only one
  std::vector<size_t> numbers;        // of its cases
  std::vector<Contender> contenders;  // cases with a value, the best first
};

bool IsTimeToLoss(const Measure& measure) { return std::string(measure.name) == "time_to_loss"; }

const Measure& DecidingMeasure(const ExperimentPlan& plan) {
  for (const Measure* measure : plan.measures) {
    if (IsTimeToLoss(*measure)) return *measure;
  }
  return plan.verdicts.empty() ? *plan.measures.front() : *plan.verdicts.front().measure;
}

// The first measure other than `measure`; nullptr: none.
const Measure* MeasureAfter(const ExperimentPlan& plan, const Measure& measure) {
  const auto other = std::find_if(plan.measures.begin(), plan.measures.end(),
                                  [&](const Measure* one) { return one != &measure; });
  return other == plan.measures.end() ? nullptr : *other;
}

bool NoCaseReachedTheLoss(const Measure& measure, const std::vector<Setting>& settings) {
  return IsTimeToLoss(measure) &&
         std::all_of(settings.begin(), settings.end(),
                     [](const Setting& setting) { return setting.contenders.empty(); });
}

// "no case reached the target loss of 1.92".
std::string TargetText(const std::string& who, const ExperimentPlan& plan) {
  return absl::StrFormat("%s the target loss of %g", who, plan.file.target_loss());
}

// Axes whose values are compared with each other.
std::vector<size_t> ComparedAxes(const ExperimentPlan& plan) {
  std::vector<size_t> compared = plan.BaselineAxes();
  for (const PlannedVerdict& verdict : plan.verdicts) {
    if (verdict.best_over.has_value()) compared.push_back(*verdict.best_over);
  }
  for (size_t axis = 0; axis < plan.axes.size() && !plan.file.has_baseline(); ++axis) {
    compared.push_back(axis);
  }
  return compared;
}

bool Has(const std::vector<size_t>& axes, size_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// "asp", or "workers 4" if the label has no meaning without its axis.
std::string NameOf(const ExperimentPlan& plan, const std::vector<size_t>& compared,
                   const PlannedCase& one) {
  if (plan.axes.empty()) return one.name;
  const std::string named =
      NamedValues(plan, one, [&](size_t axis) { return Has(compared, axis); });
  if (compared.size() != 1) return named;
  const std::string& label = plan.axes[compared[0]].titles[one.values[compared[0]]];
  const bool is_word = absl::ascii_isalpha(static_cast<unsigned char>(label[0])) &&
                       label != "none" && label != "true" && label != "false";
  return is_word ? label : named;
}

bool IsBetter(const Measure& measure, const Contender& a, const Contender& b) {
  return measure.better == Better::kLower ? a.value.median < b.value.median
                                          : a.value.median > b.value.median;
}

std::vector<Setting> SettingsOf(const ExperimentResults& results, const Measure& measure) {
  const ExperimentPlan& plan = results.plan;
  const std::vector<size_t> compared = ComparedAxes(plan);
  // An axis with one value is not worth naming.
  const auto is_named = [&](size_t axis) {
    return !Has(compared, axis) && plan.ValuesInCases(axis).size() > 1;
  };
  std::vector<Setting> settings;
  for (size_t number = 0; number < plan.cases.size(); ++number) {
    const PlannedCase& one = plan.cases[number];
    const std::string title = NamedValues(plan, one, is_named);
    auto setting = std::find_if(settings.begin(), settings.end(),
                                [&](const Setting& other) { return other.title == title; });
    if (setting == settings.end()) setting = settings.insert(setting, Setting{.title = title});
    setting->numbers.push_back(number);
    const auto value = SpreadOfRepeats(results.Values(one, measure));
    if (value.has_value()) {
      setting->contenders.push_back({number, NameOf(plan, compared, one), *value});
    }
  }
  for (Setting& setting : settings) {
    std::stable_sort(
        setting.contenders.begin(), setting.contenders.end(),
        [&](const Contender& a, const Contender& b) { return IsBetter(measure, a, b); });
  }
  return settings;
}

std::string ValueText(const Measure& measure, const Contender& one) {
  return absl::StrCat(NumberText(one.value.median, measure.digits), " ", measure.unit);
}

bool IsTime(const Measure& measure) {
  const std::string unit = measure.unit;
  return measure.better == Better::kLower && (unit == "ms" || unit == "s");
}

// "1.31 times as fast as fp32". `compared`: of the case with the other.
std::string ComparedWith(const Measure& measure, const RepeatSpread& compared,
                         const std::string& other) {
  if (measure.comparing == Comparing::kDifference) {
    return absl::StrFormat("%.*f %s %s", measure.digits, std::abs(compared.median),
                           compared.median < 0 ? "below" : "above", other);
  }
  const double ratio = IsTime(measure) ? 1 / compared.median : compared.median;
  if (std::abs(ratio - 1) < kNoRatio) {
    return absl::StrCat(IsTime(measure) ? "as fast as " : "as much as ", other);
  }
  return IsTime(measure) ? absl::StrFormat("%.2f times as fast as %s", ratio, other)
                         : absl::StrFormat("%.2f times that of %s", ratio, other);
}

// "lowest step time".
std::string Superlative(const Measure& measure) {
  return absl::StrCat(measure.better == Better::kLower ? "lowest " : "highest ", measure.title);
}

// The contender to compare the best with: the baseline, or the second best if that is the best.
const Contender* OpponentOf(const ExperimentPlan& plan, const Setting& setting) {
  const auto baseline = plan.BaselineOf(setting.contenders.front().number);
  for (const Contender& one : setting.contenders) {
    if (baseline == one.number) return &one;
  }
  return setting.contenders.size() > 1 ? &setting.contenders[1] : nullptr;
}

// Contenders whose interval overlaps with the best one's.
std::vector<const Contender*> AsGood(const Setting& setting) {
  const Contender& best = setting.contenders.front();
  std::vector<const Contender*> found;
  for (size_t i = 1; i < setting.contenders.size(); ++i) {
    const RepeatSpread& other = setting.contenders[i].value;
    if (other.low <= best.value.high && best.value.low <= other.high) {
      found.push_back(&setting.contenders[i]);
    }
  }
  return found;
}

// "1.31 times as fast as fp32"; empty: nothing to compare with.
std::string RatioText(const ExperimentResults& results, const Measure& measure,
                      const Setting& setting) {
  const Contender* opponent = OpponentOf(results.plan, setting);
  if (opponent == nullptr) return "";
  const auto compared =
      results.CompareWith(setting.contenders.front().number, opponent->number, measure);
  if (!compared.has_value()) return "";
  return ComparedWith(measure, compared->spread, opponent->name);
}

// The ratio to the opponent, if the best is clearly ahead of that, and whom it is not ahead of.
std::string Comparison(const ExperimentResults& results, const Measure& measure,
                       const Setting& setting) {
  const std::vector<const Contender*> as_good = AsGood(setting);
  const Contender* opponent = OpponentOf(results.plan, setting);
  const bool is_ahead = std::find(as_good.begin(), as_good.end(), opponent) == as_good.end();
  const std::string ratio = is_ahead ? RatioText(results, measure, setting) : "";
  const std::string text = ratio.empty() ? "" : absl::StrCat(", ", ratio);
  if (as_good.empty()) return text;
  std::vector<std::string> names;
  for (const Contender* one : as_good) names.push_back(one->name);
  return absl::StrCat(text, ", not clearly ahead of ",
                      names.size() <= kListedNames ? absl::StrJoin(names, " and ")
                                                   : absl::StrCat(names.size(), " others"));
}

// "bf16/bf16 had the lowest step time, 15.37 ms, 1.39 times as fast as fp32".
std::string SettingText(const ExperimentResults& results, const Measure& measure,
                        const Setting& setting) {
  const bool to_loss = IsTimeToLoss(measure);
  if (setting.contenders.empty()) {
    return to_loss ? TargetText("no case reached", results.plan)
                   : absl::StrCat("no case has a ", measure.title);
  }
  const Contender& best = setting.contenders.front();
  const std::string value = ValueText(measure, best);
  const bool only = setting.numbers.size() == 1;
  if (to_loss) {
    const size_t ended = results.Ended(results.plan.cases[best.number]);
    const std::string runs = best.value.count < ended
                                 ? absl::StrCat(" in ", best.value.count, " of ", ended, " runs")
                                 : "";
    return absl::StrCat(TargetText(absl::StrCat(best.name, " reached"), results.plan),
                        only                            ? ""
                        : setting.contenders.size() > 1 ? " first"
                                                        : " as the only case",
                        runs, ", in ", value, Comparison(results, measure, setting));
  }
  if (only) return absl::StrCat(best.name, " had a ", measure.title, " of ", value);
  return absl::StrCat(best.name, " had the ", Superlative(measure), ", ", value,
                      Comparison(results, measure, setting));
}

// "(pays: 6 of 6)": answers of the first verdict in a setting, or in all.
std::string VerdictText(const ExperimentResults& results, const std::vector<size_t>& numbers) {
  if (results.plan.verdicts.empty()) return "";
  const PlannedVerdict& verdict = results.plan.verdicts.front();
  size_t answered = 0, yes = 0, open = 0;
  for (const CaseVerdict& one : VerdictsOf(results, verdict)) {
    const bool here = std::find(numbers.begin(), numbers.end(), one.number) != numbers.end();
    if (!here || !one.answer.has_value()) continue;
    ++answered;
    yes += *one.answer == Answer::kYes;
    open += *one.answer == Answer::kNotClear;
  }
  if (answered == 0) return "";
  return absl::StrCat(" (", verdict.yes, ": ", yes, " of ", answered,
                      open == 0 ? "" : absl::StrCat(", not clear: ", open), ")");
}

std::string ListedSettings(const ExperimentResults& results, const Measure& measure,
                           const std::vector<Setting>& settings) {
  std::vector<std::string> texts;
  for (const Setting& setting : settings) {
    texts.push_back(absl::StrCat(setting.title.empty() ? "" : absl::StrCat(setting.title, ": "),
                                 SettingText(results, measure, setting),
                                 VerdictText(results, setting.numbers)));
  }
  return absl::StrJoin(texts, "; ");
}

// Settings in which a contender is clearly the best.
struct Wins {
  std::string name;
  std::vector<const Setting*> settings;
};

// The contender with the most wins first.
std::vector<Wins> WinsOf(const std::vector<Setting>& settings) {
  std::vector<Wins> all;
  for (const Setting& setting : settings) {
    if (setting.contenders.size() < 2 || !AsGood(setting).empty()) continue;
    const std::string& name = setting.contenders.front().name;
    auto wins =
        std::find_if(all.begin(), all.end(), [&](const Wins& other) { return other.name == name; });
    if (wins == all.end()) wins = all.insert(wins, {.name = name});
    wins->settings.push_back(&setting);
  }
  std::stable_sort(all.begin(), all.end(), [](const Wins& a, const Wins& b) {
    return a.settings.size() > b.settings.size();
  });
  return all;
}

// The setting in which the best is furthest ahead of its opponent.
const Setting& LargestLead(const ExperimentPlan& plan, const Measure& measure, const Wins& wins) {
  const auto lead = [&](const Setting* setting) {
    const double best = setting->contenders.front().value.median;
    const double other = OpponentOf(plan, *setting)->value.median;
    return measure.comparing == Comparing::kRatio ? std::abs(std::log(best / other))
                                                  : std::abs(best - other);
  };
  return **std::max_element(wins.settings.begin(), wins.settings.end(),
                            [&](const auto* a, const auto* b) { return lead(a) < lead(b); });
}

// "BYTESCHEDULER had clearly the lowest mean step time in 6 of 9 settings, up to 1.31 times as fast
// as FIFO (WFBP) (model vgg16, ratio 1); in 3 no case is clearly ahead".
std::string CountedSettings(const ExperimentResults& results, const Measure& measure,
                            const std::vector<Setting>& settings) {
  const std::vector<Wins> all = WinsOf(settings);
  std::vector<std::string> texts;
  size_t clear = 0;
  for (const Wins& wins : all) {
    clear += wins.settings.size();
    if (!texts.empty()) {
      texts.push_back(absl::StrCat(wins.name, " in ", wins.settings.size()));
      continue;
    }
    const Setting& clearest = LargestLead(results.plan, measure, wins);
    const std::string ratio = RatioText(results, measure, clearest);
    texts.push_back(absl::StrCat(wins.name, " had clearly the ", Superlative(measure), " in ",
                                 wins.settings.size(), " of ", settings.size(), " settings",
                                 ratio.empty() ? "" : absl::StrCat(", up to ", ratio), " (",
                                 clearest.title, ")"));
  }
  if (clear == 0) {
    texts.push_back(absl::StrCat("no case had clearly the ", Superlative(measure), " in any of ",
                                 settings.size(), " settings"));
  } else if (clear < settings.size()) {
    texts.push_back(absl::StrCat("in ", settings.size() - clear, " no case is clearly ahead"));
  }
  std::vector<size_t> numbers;
  for (const Setting& setting : settings) {
    numbers.insert(numbers.end(), setting.numbers.begin(), setting.numbers.end());
  }
  return absl::StrCat(absl::StrJoin(texts, "; "), VerdictText(results, numbers));
}

// Steps of asynchronous and synchronous cases have a different number of updates.
std::string UpdatesCatch(const ExperimentResults& results) {
  std::set<std::string> asynchronous, synchronous;
  std::set<uint64_t> updates;
  for (const PlannedCase& one : results.plan.cases) {
    if (results.Ended(one) == 0) continue;
    const SyncConfig& sync = one.config.sync();
    const std::string name = absl::AsciiStrToUpper(SyncModeOf(sync.policy()).name);
    const bool is_asynchronous = StalenessBound(sync).has_value();
    (is_asynchronous ? asynchronous : synchronous).insert(name);
    if (is_asynchronous) updates.insert(VersionsPerStep(one.config));
  }
  if (asynchronous.empty() || synchronous.empty() || *updates.rbegin() < 2) return "";
  return absl::StrCat("; ", absl::StrJoin(asynchronous, " and "),
                      asynchronous.size() == 1 ? " makes " : " make ",
                      updates.size() > 1 ? "up to " : "", *updates.rbegin(),
                      " updates for each of ", *synchronous.rbegin(),
                      "'s, since each worker's push is an update of its own: compare time and "
                      "tokens, not steps");
}

}  // namespace

std::string AnswerOf(const ExperimentResults& results) {
  const ExperimentPlan& plan = results.plan;
  if (results.rows.empty()) return "";
  const Measure* measure = &DecidingMeasure(plan);
  std::vector<Setting> settings = SettingsOf(results, *measure);
  std::string text;
  if (const size_t missing = results.Missing(); missing > 0) {
    text = absl::StrCat("after ", plan.runs() - missing, " of ", plan.runs(), " runs, ");
  }
  const Measure* const next = MeasureAfter(plan, *measure);
  if (next != nullptr && NoCaseReachedTheLoss(*measure, settings)) {
    absl::StrAppend(&text, TargetText("no case reached", plan), "; ");
    measure = next;
    settings = SettingsOf(results, *measure);
  }
  text += settings.size() <= kListedSettings ? ListedSettings(results, *measure, settings)
                                             : CountedSettings(results, *measure, settings);
  text += UpdatesCatch(results);
  if (const size_t failed = results.Failed(); failed > 0) {
    absl::StrAppend(&text, "; ", failed, " of ", plan.runs(), " runs failed");
  }
  if (plan.repeats == 1) text += "; one run each, so small differences may be chance";
  return text + ".";
}

}  // namespace tug
