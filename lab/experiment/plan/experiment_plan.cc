// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/plan/experiment_plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "config/field_path.h"
#include "config/job_config.h"
#include "google/protobuf/text_format.h"
#include "lab/experiment/measures/link_plan.h"
#include "lab/experiment/plan/experiment_axes.h"
#include "lab/experiment/plan/experiment_text.h"
#include "lab/experiment/plan/nearest_name.h"
#include "nlohmann/json.hpp"
#include "plan/link_rate.h"

namespace tug {
namespace {

constexpr uint32_t kDefaultRepeats = 3;
constexpr uint32_t kMaxTestbedHosts = 200;
constexpr uint64_t kMaxTextBytes = 100'000'000;
constexpr double kMaxMessageUs = 1e6;
constexpr size_t kLongestFolder = 80;
constexpr char kDefaultLink[] = "200mbit";

// Fields that place.testbed.loopback sets. One lane per server, since each lane would get the full
// rate.
constexpr char kRateField[] = "comm.impair.rate_mbit=", kSharedField[] = "comm.shared_memory=",
               kLanesField[] = "cluster.lanes_per_server=";

using Path = std::vector<ExperimentText::Step>;

// Overrides of a case, after the made-up text: they may replace it.
std::vector<std::string> WithText(const ExperimentPlan& plan, const PlannedCase& one) {
  std::vector<std::string> overrides;
  if (!plan.made_up_text_path.empty()) overrides.push_back("data.path=" + plan.made_up_text_path);
  overrides.insert(overrides.end(), one.overrides.begin(), one.overrides.end());
  return overrides;
}

class Planner {
 public:
  Planner(const ExperimentText& text, ExperimentPlan& plan)
      : text_(text), file_(plan.file), plan_(plan), axes_(text) {}

  // Each step relies on the checks of the previous ones.
  absl::Status Run(const std::string& job_text, const std::string& job_source) {
    RETURN_IF_ERROR(CheckPlainFields());
    RETURN_IF_ERROR(TakeJob(job_text, job_source));
    for (int i = 0; i < file_.set_size(); ++i) {
      RETURN_IF_ERROR(CheckSetting({{"set", i}}, file_.set(i)));
    }
    RETURN_IF_ERROR(axes_.Read());
    plan_.axes = axes_.axes();
    RETURN_IF_ERROR(MakeCases());
    RETURN_IF_ERROR(TakeMeasures());
    RETURN_IF_ERROR(TakeFigures());
    RETURN_IF_ERROR(TakeVerdicts());
    return CheckSections();
  }

 private:
  absl::Status CheckPlainFields();
  absl::Status TakeJob(const std::string& job_text, const std::string& job_source);
  absl::Status CheckSetting(const Path& path, const std::string& setting);
  absl::Status MakeCases();
  absl::Status MakeCase(const std::vector<size_t>& values);
  absl::Status CheckPlace(PlannedCase& one);
  absl::StatusOr<const Measure*> ResolveMeasure(const Path& path, const std::string& name) const;
  absl::Status TakeMeasures();
  absl::Status TakeFigures();
  absl::StatusOr<PlannedFigure> TakeFigure(const Path& path, const Figure& figure) const;
  absl::Status TakeVerdicts();
  absl::Status CheckSections();

  const ExperimentText& text_;
  const Experiment& file_;
  ExperimentPlan& plan_;
  ExperimentAxes axes_;
  std::string job_source_;
};

absl::Status Planner::CheckPlainFields() {
  if (!IsExperimentName(file_.name())) {
    return text_.Error({{"name"}}, "name is missing or invalid; use letters, digits, '-' and '_'");
  }
  if (file_.question().empty()) {
    return text_.Error(
        {{"question"}},
        "question is missing; state in one sentence what the experiment should find out");
  }
  plan_.repeats = file_.has_repeats() ? file_.repeats() : kDefaultRepeats;
  if (plan_.repeats < 1 || plan_.repeats > kMaxRepeats) {
    return text_.Error({{"repeats"}}, absl::StrCat("repeats = ", plan_.repeats,
                                                   " is out of range; give 1..", kMaxRepeats));
  }
  if (file_.made_up_text_bytes() > kMaxTextBytes) {
    return text_.Error({{"made_up_text_bytes"}},
                       absl::StrCat("made_up_text_bytes = ", file_.made_up_text_bytes(),
                                    " is out of range; give 0..", kMaxTextBytes));
  }
  if (!(file_.message_us() >= 0 && file_.message_us() <= kMaxMessageUs)) {
    return text_.Error({{"message_us"}}, absl::StrCat("message_us = ", file_.message_us(),
                                                      " is out of range; give 0..", kMaxMessageUs));
  }
  if (!std::isfinite(file_.target_loss())) {
    return text_.Error({{"target_loss"}}, absl::StrCat("target_loss = ", file_.target_loss(),
                                                       " is not finite; give a finite loss"));
  }
  return absl::OkStatus();
}

absl::Status Planner::TakeJob(const std::string& job_text, const std::string& job_source) {
  switch (file_.base_case()) {
    case Experiment::kJob:
      job_source_ = absl::StrCat(text_.source(), ", job");
      google::protobuf::TextFormat::PrintToString(file_.job(), &plan_.job_text);
      return absl::OkStatus();
    case Experiment::kJobFile:
      job_source_ = job_source;
      plan_.job_text = job_text;
      return absl::OkStatus();
    case Experiment::BASE_NOT_SET:
      break;
  }
  return text_.Error({}, "no job given; set `job { ... }` or `job_file`");
}

absl::Status Planner::CheckSetting(const Path& path, const std::string& setting) {
  JobConfig job;
  Place place;
  const absl::Status status = ApplySetting(setting, job, place);
  return status.ok() ? status : text_.Error(path, std::string(status.message()));
}

absl::Status Planner::MakeCases() {
  double combinations = 1;
  for (const PlannedAxis& axis : plan_.axes) {
    combinations *= static_cast<double>(axis.labels.size());
  }
  if (combinations > 100.0 * kMaxCases) {
    return text_.Error(
        {{"axes"}},
        absl::StrFormat("%.0f combinations are too many; remove axes or values", combinations));
  }
  std::vector<size_t> values(plan_.axes.size(), 0);
  for (bool more = true; more;) {
    if (axes_.IsRun(values)) RETURN_IF_ERROR(MakeCase(values));
    more = false;
    for (size_t axis = values.size(); axis > 0 && !more; --axis) {
      more = ++values[axis - 1] < plan_.axes[axis - 1].labels.size();
      if (!more) values[axis - 1] = 0;
    }
  }
  if (!plan_.cases.empty()) return absl::OkStatus();
  return text_.Error({{file_.exclude_size() > 0 ? "exclude" : "only"}},
                     "no case is left to run; remove some `exclude` or `only`");
}

std::string FolderOf(size_t number, const std::vector<std::string>& labels) {
  std::string folder = absl::StrFormat("%03d", number + 1);
  for (const std::string& label : labels) absl::StrAppend(&folder, "-", label);
  for (char& c : folder) {
    const auto byte = static_cast<unsigned char>(c);
    if (!absl::ascii_isalnum(byte) && c != '-' && c != '_' && c != '.') c = '_';
  }
  return folder.substr(0, kLongestFolder);
}

absl::Status Planner::MakeCase(const std::vector<size_t>& values) {
  if (plan_.cases.size() == kMaxCases) {
    return text_.Error({{"axes"}}, absl::StrCat("more than ", kMaxCases,
                                                " cases are too many; remove axes or values"));
  }
  PlannedCase one{.values = values, .place = file_.place()};
  std::vector<std::string> parts, labels, settings(file_.set().begin(), file_.set().end());
  for (size_t axis = 0; axis < values.size(); ++axis) {
    const PlannedAxis& of = plan_.axes[axis];
    labels.push_back(of.labels[values[axis]]);
    parts.push_back(absl::StrCat(of.name, "=", labels.back()));
  }
  const std::vector<std::string> of_values = axes_.SettingsOf(values);
  settings.insert(settings.end(), of_values.begin(), of_values.end());
  one.name = parts.empty() ? "the job" : absl::StrJoin(parts, ", ");
  one.folder = FolderOf(plan_.cases.size(), labels);
  const auto refuse = [&](const std::string& what) {
    return text_.Error({}, absl::StrCat("case ", one.name, ": ", what));
  };
  JobConfig ignored;
  for (std::string& setting : settings) {
    if (IsSettingOfPlace(setting)) {
      RETURN_IF_ERROR(ApplySetting(setting, ignored, one.place));
    } else {
      one.overrides.push_back(std::move(setting));
    }
  }
  const absl::Status place = CheckPlace(one);
  if (!place.ok()) return refuse(std::string(place.message()));
  const std::vector<std::string> overrides = [&] {
    std::vector<std::string> all = WithText(plan_, one);
    if (file_.has_first_seed()) all.push_back(absl::StrCat("seed=", file_.first_seed()));
    return all;
  }();
  absl::StatusOr<JobConfig> config = ParseJobConfig(plan_.job_text, job_source_, overrides);
  if (!config.ok()) {
    const std::string message(config.status().message());
    return absl::StartsWith(message, job_source_)
               ? config.status()
               : refuse(absl::StrCat(message, "; change its settings, or exclude it"));
  }
  one.config = *std::move(config);
  const uint64_t local_steps = std::max(1u, one.config.sync().local_steps());
  one.own_warm_up = axes_.WarmUpOf(values);
  const uint64_t warm_up = one.own_warm_up.value_or(file_.warm_up_steps());
  one.warm_up_steps = (warm_up + local_steps - 1) / local_steps;
  if (one.warm_up_steps >= one.config.train().steps()) {
    return refuse(
        absl::StrCat("warm_up_steps = ", warm_up, " leaves no step to measure of train.steps = ",
                     one.config.train().steps(), "; lower warm_up_steps or raise train.steps"));
  }
  plan_.first_seed = one.config.seed();  // the same for all cases
  plan_.cases.push_back(std::move(one));
  return absl::OkStatus();
}

absl::Status Planner::CheckPlace(PlannedCase& one) {
  Place& place = one.place;
  if (place.kind_case() == Place::KIND_NOT_SET) place.mutable_local();
  if (place.has_hosts() && place.hosts().file().empty()) {
    return absl::InvalidArgumentError("place.hosts.file is missing; name a hosts file");
  }
  if (!place.has_testbed()) return absl::OkStatus();
  TestbedPlace& testbed = *place.mutable_testbed();
  if (testbed.hosts() > kMaxTestbedHosts) {
    return absl::InvalidArgumentError(absl::StrCat("place.testbed.hosts = ", testbed.hosts(),
                                                   " is out of range; give 0..", kMaxTestbedHosts));
  }
  if (testbed.link().empty()) testbed.set_link(kDefaultLink);
  if (testbed.link() == kNoLink) return absl::OkStatus();
  const absl::StatusOr<double> rate = ParseLinkRate(testbed.link());
  if (!rate.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("place.testbed.link ", testbed.link(),
                     " is invalid; set none, or a rate such as 100mbit or 1gbit"));
  }
  if (!testbed.loopback()) return absl::OkStatus();
  for (const std::string& setting : one.overrides) {
    if (absl::StartsWith(setting, kRateField) || absl::StartsWith(setting, kSharedField) ||
        absl::StartsWith(setting, kLanesField)) {
      return absl::InvalidArgumentError(
          absl::StrCat(setting, ": place.testbed.loopback sets this field; remove one of the two"));
    }
  }
  one.overrides.push_back(absl::StrFormat("%s%.9g", kRateField, *rate * 1e-6));
  one.overrides.push_back(absl::StrCat(kSharedField, "false"));
  one.overrides.push_back(absl::StrCat(kLanesField, "1"));
  place.mutable_local();
  return absl::OkStatus();
}

absl::StatusOr<const Measure*> Planner::ResolveMeasure(const Path& path,
                                                       const std::string& name) const {
  const Measure* measure = FindMeasure(name);
  if (name == "loss_at_samples" && !file_.has_at_samples()) {
    return text_.Error(path, "loss_at_samples needs `at_samples`");
  }
  if (name == "time_to_loss" && !file_.has_target_loss()) {
    return text_.Error(path, "time_to_loss needs `target_loss`");
  }
  if (measure != nullptr) return measure;
  return text_.Error(path, absl::StrCat("unknown measure ", name,
                                        "; known measures: ", absl::StrJoin(MeasureNames(), ", "),
                                        DidYouMean(name, MeasureNames())));
}

absl::Status Planner::TakeMeasures() {
  std::vector<std::string> names(file_.measures().begin(), file_.measures().end());
  if (names.empty()) names = {"step_time", "wall_time"};
  for (size_t i = 0; i < names.size(); ++i) {
    const Path path = {{"measures", static_cast<int>(i)}};
    ASSIGN_OR_RETURN(const Measure* measure, ResolveMeasure(path, names[i]));
    if (std::find(plan_.measures.begin(), plan_.measures.end(), measure) != plan_.measures.end()) {
      return text_.Error(path, absl::StrCat("measure ", names[i], " is listed twice; remove one"));
    }
    plan_.measures.push_back(measure);
  }
  return absl::OkStatus();
}

absl::Status Planner::TakeFigures() {
  std::vector<Figure> figures(file_.figures().begin(), file_.figures().end());
  if (plan_.axes.empty()) {
    if (figures.empty()) return absl::OkStatus();
    return text_.Error({{"figures"}}, "a figure needs an axis; add one to the experiment");
  }
  if (figures.empty()) figures.emplace_back();
  for (size_t i = 0; i < figures.size(); ++i) {
    ASSIGN_OR_RETURN(PlannedFigure planned,
                     TakeFigure({{"figures", static_cast<int>(i)}}, figures[i]));
    plan_.figures.push_back(std::move(planned));
  }
  return absl::OkStatus();
}

absl::StatusOr<PlannedFigure> Planner::TakeFigure(const Path& path, const Figure& figure) const {
  PlannedFigure planned{.measure = plan_.measures.front(), .over = 0, .title = figure.title()};
  if (!figure.measure().empty()) {
    ASSIGN_OR_RETURN(planned.measure, ResolveMeasure(path, figure.measure()));
  }
  if (!figure.part().empty()) {
    ASSIGN_OR_RETURN(planned.part, ResolveMeasure(path, figure.part()));
  }
  if (planned.part != nullptr &&
      absl::string_view(planned.part->unit) != absl::string_view(planned.measure->unit)) {
    return text_.Error(path, absl::StrCat("figures: `part` ", planned.part->name,
                                          " has a different unit than ", planned.measure->name));
  }
  if (!figure.over().empty()) {
    ASSIGN_OR_RETURN(planned.over, axes_.FindAxis(path, figure.over()));
  }
  if (!figure.panels().empty()) {
    ASSIGN_OR_RETURN(planned.panels, axes_.FindAxis(path, figure.panels()));
  }
  if (!figure.by().empty()) {
    ASSIGN_OR_RETURN(planned.by, axes_.FindAxis(path, figure.by()));
  }
  for (size_t axis = 0; axis < plan_.axes.size() && !planned.by.has_value(); ++axis) {
    if (axis != planned.over && axis != planned.panels) planned.by = axis;
  }
  if (planned.by == planned.over || planned.panels == planned.over ||
      (planned.by.has_value() && planned.by == planned.panels)) {
    return text_.Error(
        path,
        "figures: `over`, `by` and `panels` name an axis twice; use a different axis for each");
  }
  return planned;
}

absl::Status Planner::TakeVerdicts() {
  for (int i = 0; i < file_.verdicts_size(); ++i) {
    const Verdict& verdict = file_.verdicts(i);
    const Path path = {{"verdicts", i}};
    PlannedVerdict planned{.margin = verdict.margin(), .yes = verdict.yes(), .no = verdict.no()};
    ASSIGN_OR_RETURN(planned.measure, ResolveMeasure(path, verdict.measure()));
    if (planned.yes.empty() || planned.no.empty()) {
      return text_.Error(path,
                         "verdicts: `yes` or `no` is missing; give the words of both answers");
    }
    if (!file_.has_baseline()) {
      return text_.Error(path, "verdicts: `baseline` is missing; set the baseline to compare with");
    }
    const bool ratio = planned.measure->comparing == Comparing::kRatio;
    if (!std::isfinite(planned.margin) || (ratio && planned.margin >= 1)) {
      return text_.Error(
          path, "verdicts: `margin` is out of range; give a finite number, below 1 for a ratio");
    }
    if (!verdict.best_over().empty()) {
      ASSIGN_OR_RETURN(planned.best_over, axes_.FindAxis(path, verdict.best_over()));
      const std::vector<size_t> baseline = plan_.BaselineAxes();
      if (std::find(baseline.begin(), baseline.end(), *planned.best_over) != baseline.end()) {
        return text_.Error(path,
                           "verdicts: `best_over` is an axis of the baseline; name another axis");
      }
    }
    plan_.verdicts.push_back(std::move(planned));
  }
  return absl::OkStatus();
}

absl::Status Planner::CheckSections() {
  std::set<int> seen;
  for (int i = 0; i < file_.sections_size(); ++i) {
    const Path path = {{"sections", i}};
    const int section = file_.sections(i);
    if (!seen.insert(section).second || section == Experiment::SECTION_DEFAULT) {
      return text_.Error(path, "sections: name each section once, and never SECTION_DEFAULT");
    }
    const bool traced = std::any_of(plan_.cases.begin(), plan_.cases.end(),
                                    [](const auto& one) { return one.config.trace().steps() > 0; });
    if (section == Experiment::TIMELINES && !traced) {
      return text_.Error(path, "TIMELINES needs a traced job; set trace.steps");
    }
    const bool replays = std::any_of(plan_.cases.begin(), plan_.cases.end(), [](const auto& one) {
      return one.config.compute() == JobConfig::REPLAY;
    });
    if (section == Experiment::SCHEDULING && !replays) {
      return text_.Error(path, "SCHEDULING needs a replay; set compute to REPLAY");
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool ExperimentPlan::HasSection(Experiment::Section section) const {
  const auto& sections = file.sections();
  return std::find(sections.begin(), sections.end(), section) != sections.end();
}

std::vector<size_t> ExperimentPlan::ValuesInCases(size_t axis) const {
  std::set<size_t> values;
  for (const PlannedCase& one : cases) values.insert(one.values[axis]);
  return {values.begin(), values.end()};
}

std::optional<size_t> ExperimentPlan::BaselineOf(size_t number) const {
  if (!file.has_baseline()) return std::nullopt;
  std::vector<size_t> wanted = cases[number].values;
  for (const std::string& where : file.baseline().where()) {
    const size_t equals = where.find('=');
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis].name != where.substr(0, equals)) continue;
      const auto& labels = axes[axis].labels;
      wanted[axis] =
          std::find(labels.begin(), labels.end(), where.substr(equals + 1)) - labels.begin();
    }
  }
  for (size_t other = 0; other < cases.size(); ++other) {
    if (other != number && cases[other].values == wanted) return other;
  }
  return std::nullopt;
}

std::vector<size_t> ExperimentPlan::BaselineAxes() const {
  std::vector<size_t> named;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    for (const std::string& where : file.baseline().where()) {
      if (where.substr(0, where.find('=')) == axes[axis].name) named.push_back(axis);
    }
  }
  return named;
}

nlohmann::ordered_json ExperimentPlan::Identity() const {
  nlohmann::ordered_json identity = {{"name", file.name()},
                                     {"job", job_text},
                                     {"first_seed", first_seed},
                                     {"warm_up_steps", file.warm_up_steps()},
                                     {"at_samples", file.at_samples()},
                                     {"target_loss", file.target_loss()},
                                     {"made_up_text_bytes", file.made_up_text_bytes()},
                                     {"cases", nlohmann::ordered_json::array()}};
  for (const PlannedCase& one : cases) {
    identity["cases"].push_back(
        {{"name", one.name}, {"set", one.overrides}, {"place", one.place.ShortDebugString()}});
    if (one.own_warm_up) identity["cases"].back()["warm_up_steps"] = *one.own_warm_up;
  }
  return identity;
}

absl::StatusOr<std::string> JobFileOf(const std::string& text, const std::string& source) {
  ASSIGN_OR_RETURN(const ExperimentText parsed, ExperimentText::Parse(text, source));
  return parsed.file().job_file();
}

absl::StatusOr<ExperimentPlan> PlanExperiment(const ExperimentSource& source) {
  ASSIGN_OR_RETURN(const ExperimentText parsed, ExperimentText::Parse(source.text, source.name));
  ExperimentPlan plan{.file = parsed.file(), .source = source.name};
  for (const std::string& setting : source.settings) {
    JobConfig job;
    Place place;
    const absl::Status status = ApplySetting(setting, job, place);
    if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat("--set ", status.message()));
    plan.file.add_set(setting);
  }
  if (source.repeats.has_value()) plan.file.set_repeats(*source.repeats);
  const auto& set = plan.file.set();
  const bool has_text = std::any_of(set.begin(), set.end(), [](const std::string& setting) {
    return absl::StartsWith(setting, "data.path=");
  });
  if (plan.file.made_up_text_bytes() > 0 && !has_text) {
    plan.made_up_text_path = source.made_up_text_path;
  }
  RETURN_IF_ERROR(Planner(parsed, plan).Run(source.job_text, source.job_name));
  return plan;
}

std::vector<std::string> OverridesOf(const ExperimentPlan& plan, const PlannedCase& one,
                                     uint32_t repeat) {
  std::vector<std::string> overrides = WithText(plan, one);
  overrides.push_back(absl::StrCat("seed=", plan.seed(repeat)));
  return overrides;
}

}  // namespace tug
