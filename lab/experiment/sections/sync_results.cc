// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/sync_results.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "config/sync_mode.h"
#include "lab/experiment/measures/figure_text.h"
#include "lab/experiment/measures/measure.h"
#include "model/replay/replay_profile.h"

namespace tug {
namespace {

using Spread = std::optional<RepeatSpread>;

constexpr const char* kModeFields[] = {
    "sync.policy=", "sync.staleness=", "sync.backups=", "sync.local_steps="};
constexpr const char* kStragglerFields[] = {"straggler."};
// Measures.
constexpr char kMaxWaitShare[] = "most_wait_share", kMaxStaleness[] = "most_staleness";

std::string SyncTitleOf(const ExperimentPlan& plan, const PlannedCase& one) {
  const std::string others = NamedValues(plan, one, [&](size_t axis) {
    return !SetsAny(plan.axes[axis], kModeFields) && !SetsAny(plan.axes[axis], kStragglerFields);
  });
  return absl::StrCat("Sync policies", others.empty() ? "" : ", ", others);
}

StragglerKind KindOf(const StragglerConfig& straggler) {
  if (straggler.slowdown() > 1) return StragglerKind::kPersistent;
  return straggler.pause_probability() > 0 ? StragglerKind::kPauses : StragglerKind::kNone;
}

const char* NameOf(StragglerKind kind) {
  switch (kind) {
    case StragglerKind::kNone:
      return "none";
    case StragglerKind::kPersistent:
      return "persistent";
    case StragglerKind::kPauses:
      return "pauses";
  }
  return "";
}

std::optional<double> BoundOf(const JobConfig& config) {
  const StragglerConfig& straggler = config.straggler();
  const double workers = config.cluster().virtual_workers(), slowdown = straggler.slowdown();
  if (config.compute() != JobConfig::REPLAY || slowdown <= 1 || straggler.pause_probability() > 0 ||
      config.cluster().workers() != workers) {
    return std::nullopt;
  }
  switch (config.sync().policy()) {
    case SyncConfig::ASP:
      return (workers - 1 + 1 / slowdown) / workers;
    case SyncConfig::BACKUP:
      return 1;
    default:
      return 1 / slowdown;
  }
}

uint64_t BatchSamples(const CaseCourse& course) {
  if (course.config.compute() != JobConfig::REPLAY) return course.config.train().global_batch();
  return uint64_t{course.config.replay().resolved_profile().batch()} *
         course.config.cluster().virtual_workers();
}

std::string AboutReplay(const SyncPart& part) {
  for (const SyncCase& one : part.cases) {
    if (one.first_repeat == nullptr) continue;
    const ReplayProfile& profile = one.first_repeat->config.replay().resolved_profile();
    return absl::StrFormat(
        "A replay of %s: workers sleep instead of computing, %.4g ms per step, so that they do not "
        "disturb one another, and exchange real bytes (a model of %.2f MB).",
        profile.name(), ReplayForwardMs(profile) + ReplayBackwardMs(profile),
        static_cast<double>(ReplayParameters(profile)) * sizeof(float) * 1e-6);
  }
  return "A replay.";
}

// Describes a straggler by the case with the fewest local steps.
std::string AboutStraggler(const SyncPart& part, const std::string& straggler) {
  const SyncCase* example = nullptr;
  for (const SyncCase& one : part.cases) {
    if (one.straggler != straggler) continue;
    if (example == nullptr ||
        one.config->sync().local_steps() < example->config->sync().local_steps()) {
      example = &one;
    }
  }
  if (example == nullptr || example->kind == StragglerKind::kNone) return "";
  const StragglerConfig& config = example->config->straggler();
  std::string text = absl::StrCat(" Stragglers, ", straggler, ":");
  if (config.slowdown() > 1) {
    absl::StrAppendFormat(&text, " virtual worker %d computes %g times as long%s",
                          config.virtual_worker(), config.slowdown(),
                          config.pause_probability() > 0 ? ", and" : "");
  }
  if (config.pause_probability() > 0) {
    absl::StrAppendFormat(&text,
                          " each virtual worker pauses in a step with probability %g, %g ms on "
                          "average (exponential)",
                          config.pause_probability(), config.pause_ms());
  }
  return text + ".";
}

std::string AboutPart(const SyncPart& part) {
  std::string about = part.replay ? AboutReplay(part)
                                  : "A training run. Workers that share cores affect each other's "
                                    "speed: a slowed worker leaves its share of the cores to the "
                                    "others. Compare losses here, and speeds in a replay.";
  const ClusterConfig& cluster = part.cases.front().config->cluster();
  absl::StrAppendFormat(&about, " Workers: %d, virtual workers: %d, servers: %d.",
                        cluster.workers(), cluster.virtual_workers(), cluster.servers());
  for (const std::string& straggler : part.Stragglers()) about += AboutStraggler(part, straggler);
  return about;
}

// A case compared with itself has no spread.
Spread Beside(const ExperimentResults& results, size_t number, std::optional<size_t> other,
              const char* measure) {
  if (!other.has_value()) return std::nullopt;
  const auto compared = results.CompareWith(number, *other, *FindMeasure(measure));
  if (!compared.has_value()) return std::nullopt;
  if (number != *other) return compared->spread;
  return RepeatSpread{1, compared->spread.median, compared->spread.low, compared->spread.high};
}

SyncCase CaseOf(const ExperimentResults& results, size_t number) {
  const ExperimentPlan& plan = results.plan;
  const PlannedCase& one = plan.cases[number];
  SyncCase found{.mode = LabelsSetting(plan, one, kModeFields),
                 .straggler = LabelsSetting(plan, one, kStragglerFields),
                 .kind = KindOf(one.config.straggler()),
                 .config = &one.config,
                 .batches = results.SpreadOf(one, "batch_rate"),
                 .updates = results.SpreadOf(one, "update_rate"),
                 .waits = results.SpreadOf(one, "wait_share"),
                 .max_waits = results.SpreadOf(one, kMaxWaitShare),
                 .pace = results.SpreadOf(one, "straggler_pace"),
                 .seconds = results.SpreadOf(one, "job_time"),
                 .loss = results.SpreadOf(one, "final_loss"),
                 .bound = BoundOf(one.config)};
  if (found.mode.empty()) found.mode = SyncName(one.config.sync());
  if (found.straggler.empty()) found.straggler = NameOf(found.kind);
  if (StalenessBound(one.config.sync()).has_value()) {
    found.staleness = results.SpreadOf(one, "staleness");
    found.most_staleness = results.SpreadOf(one, kMaxStaleness);
  }
  if (number < results.courses.size() && results.courses[number].figures.has_value()) {
    found.first_repeat = &results.courses[number];
  }
  found.without_loss = results.Ended(one) - (found.loss.has_value() ? found.loss->count : 0);
  return found;
}

bool IsUndisturbedBsp(const SyncCase& one) {
  return one.kind == StragglerKind::kNone && one.config->sync().policy() == SyncConfig::BSP &&
         one.config->sync().local_steps() <= 1;
}

// `numbers`: indices of the part's cases in the plan.
void SetBesideOthers(const ExperimentResults& results, const std::vector<size_t>& numbers,
                     SyncPart& part) {
  const auto number = [&](const SyncCase* one) -> std::optional<size_t> {
    if (one == nullptr) return std::nullopt;
    return numbers[static_cast<size_t>(one - part.cases.data())];
  };
  const std::optional<size_t> bsp = number(part.UndisturbedBsp());
  for (size_t i = 0; i < part.cases.size(); ++i) {
    SyncCase& one = part.cases[i];
    one.of_bsp = Beside(results, numbers[i], bsp, "batch_rate");
    one.of_itself = Beside(results, numbers[i], number(part.Undisturbed(one.mode)), "batch_rate");
    if (bsp != numbers[i]) one.loss_difference = Beside(results, numbers[i], bsp, "final_loss");
  }
}

std::string PercentSpread(const RepeatSpread& spread, double scale) {
  std::string text = PercentText(spread.median * scale);
  if (spread.count < 2) return text;
  return absl::StrCat(text, " [", PercentText(spread.low * scale), ", ",
                      PercentText(spread.high * scale), "]");
}

// Speed of a case with a persistent straggler.
std::optional<std::string> PersistentFinding(const SyncCase& one) {
  if (!one.bound.has_value()) return std::nullopt;
  const std::string kept =
      one.of_itself.has_value()
          ? absl::StrCat(PercentSpread(*one.of_itself, 1), " of its undisturbed speed")
          : "";
  std::vector<std::string> parts;
  switch (one.config->sync().policy()) {
    case SyncConfig::ASP:
      if (kept.empty()) break;
      parts = {kept, absl::StrFormat("%s of the bound %.4f",
                                     PercentSpread(*one.of_itself, 1 / *one.bound), *one.bound)};
      break;
    case SyncConfig::BACKUP:
      if (one.of_bsp.has_value()) {
        parts.push_back(absl::StrCat(PercentSpread(*one.of_bsp, 1),
                                     " of undisturbed bsp's batches per second"));
      }
      if (!kept.empty()) parts.push_back(kept);
      break;
    default:
      if (!one.pace.has_value()) break;
      parts.push_back(absl::StrCat(PercentSpread(*one.pace, 0.01), " of the straggler's pace"));
      if (!kept.empty()) parts.push_back(kept);
  }
  if (parts.empty()) return std::nullopt;
  return absl::StrCat(one.mode, " with a worker ", absl::StrFormat("%g", one.slowdown()),
                      " times as slow: ", absl::StrJoin(parts, ", "));
}

std::optional<std::string> PausesFinding(const SyncCase& one) {
  if (one.kind != StragglerKind::kPauses || !one.of_itself.has_value()) return std::nullopt;
  return absl::StrCat(one.mode, " with random pauses: ", PercentSpread(*one.of_itself, 1),
                      " of its undisturbed speed");
}

// Final loss of a case, compared with that of undisturbed BSP.
std::optional<std::string> LossFinding(const SyncCase& one) {
  std::vector<std::string> parts;
  if (one.loss_difference.has_value()) {
    const RepeatSpread& difference = *one.loss_difference;
    std::string text = absl::StrCat("final loss ", SpreadText(one.loss, 4), ", ",
                                    absl::StrFormat("%+.4f", difference.median));
    if (difference.count > 1) {
      absl::StrAppendFormat(&text, " [%+.4f, %+.4f]", difference.low, difference.high);
    }
    parts.push_back(text + " compared with undisturbed bsp");
  }
  if (one.without_loss > 0) {
    parts.push_back(absl::StrCat(one.without_loss, one.without_loss == 1 ? " run" : " runs",
                                 " without a finite final loss"));
  }
  if (parts.empty()) return std::nullopt;
  return absl::StrCat(one.mode, ", stragglers: ", one.straggler, ": ", absl::StrJoin(parts, "; "));
}

template <typename Of>
std::vector<std::string> EachCase(const SyncPart& part, const Of& of) {
  std::vector<std::string> names;
  for (const SyncCase& one : part.cases) {
    if (std::find(names.begin(), names.end(), of(one)) == names.end()) names.push_back(of(one));
  }
  return names;
}

}  // namespace

const RunFigures* SyncCase::figures() const {
  return first_repeat == nullptr ? nullptr : &*first_repeat->figures;
}

const SyncCase* SyncPart::Find(const std::string& mode, const std::string& straggler) const {
  for (const SyncCase& one : cases) {
    if (one.mode == mode && one.straggler == straggler) return &one;
  }
  return nullptr;
}

const SyncCase* SyncPart::Undisturbed(const std::string& mode) const {
  for (const SyncCase& one : cases) {
    if (one.mode == mode && one.kind == StragglerKind::kNone) return &one;
  }
  return nullptr;
}

const SyncCase* SyncPart::UndisturbedBsp() const {
  const auto found = std::find_if(cases.begin(), cases.end(), IsUndisturbedBsp);
  return found == cases.end() ? nullptr : &*found;
}

std::vector<std::string> SyncPart::Modes() const {
  return EachCase(*this, [](const SyncCase& one) { return one.mode; });
}

std::vector<std::string> SyncPart::Stragglers() const {
  return EachCase(*this, [](const SyncCase& one) { return one.straggler; });
}

std::vector<SyncPart> SyncPartsOf(const ExperimentResults& results) {
  const ExperimentPlan& plan = results.plan;
  std::vector<SyncPart> parts;
  std::vector<std::vector<size_t>> numbers;
  for (size_t i = 0; i < plan.cases.size(); ++i) {
    const PlannedCase& one = plan.cases[i];
    if (results.Ended(results.plan.cases[i]) == 0) continue;
    const std::string title = SyncTitleOf(plan, one);
    auto part = std::find_if(parts.begin(), parts.end(),
                             [&](const SyncPart& other) { return other.title == title; });
    if (part == parts.end()) {
      part = parts.insert(
          parts.end(),
          SyncPart{.title = title, .replay = one.config.compute() == JobConfig::REPLAY});
      numbers.emplace_back();
    }
    part->cases.push_back(CaseOf(results, i));
    numbers[static_cast<size_t>(part - parts.begin())].push_back(i);
    if (part->cases.back().first_repeat != nullptr) {
      part->batch_samples = BatchSamples(*part->cases.back().first_repeat);
    }
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    SetBesideOthers(results, numbers[i], parts[i]);
    parts[i].about = AboutPart(parts[i]);
  }
  return parts;
}

std::vector<std::vector<std::string>> SyncTable(const SyncPart& part) {
  std::vector<std::string> head = {"straggler", "mode", MeasureHeading("batch_rate"),
                                   "vs bsp (ratio)", "vs undisturbed (ratio)"};
  if (part.replay) {
    head.insert(head.end(), {"bound (ratio)", MeasureHeading("straggler_pace")});
  }
  for (const char* measure :
       {"update_rate", "wait_share", kMaxWaitShare, "staleness", kMaxStaleness}) {
    head.push_back(MeasureHeading(measure));
  }
  if (!part.replay) {
    head.insert(head.end(), {"samples", MeasureHeading("job_time"), MeasureHeading("final_loss")});
  }
  std::vector<std::vector<std::string>> table = {std::move(head)};
  for (const std::string& straggler : part.Stragglers()) {
    for (const SyncCase& one : part.cases) {
      if (one.straggler != straggler) continue;
      std::vector<std::string>& line = table.emplace_back();
      line = {straggler, one.mode, SpreadText(one.batches, 2), SpreadText(one.of_bsp, 2),
              SpreadText(one.of_itself, 2)};
      if (part.replay) {
        line.push_back(NumberText(one.bound, 2));
        line.push_back(SpreadText(one.pace, 1));
      }
      for (const auto& [spread, digits] : {std::pair{one.updates, 2},
                                           {one.waits, 0},
                                           {one.max_waits, 0},
                                           {one.staleness, 1},
                                           {one.most_staleness, 0}}) {
        line.push_back(SpreadText(spread, digits));
      }
      if (part.replay) continue;
      line.push_back(absl::StrFormat("%.0f", SamplesAt(*one.config, one.config->train().steps())));
      line.push_back(SpreadText(one.seconds, 1));
      line.push_back(SpreadText(one.loss, 4));
    }
  }
  return WithoutEmptyColumns(table);
}

std::vector<std::string> SyncFindings(const SyncPart& part) {
  std::vector<std::string> findings;
  const auto add = [&](std::optional<std::string> (*of)(const SyncCase&)) {
    for (const SyncCase& one : part.cases) {
      if (auto finding = of(one)) findings.push_back(*std::move(finding));
    }
  };
  if (part.replay) {
    add(PersistentFinding);
    add(PausesFinding);
  } else {
    add(LossFinding);
  }
  return findings;
}

}  // namespace tug
