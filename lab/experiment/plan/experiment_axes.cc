// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/plan/experiment_axes.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "config/field_path.h"
#include "google/protobuf/descriptor.h"
#include "lab/experiment/plan/nearest_name.h"

namespace tug {
namespace {

constexpr char kPlacePrefix[] = "place.";

// The name nearest to the first unknown field of a path.
std::string NearestPart(const google::protobuf::Descriptor& root, const std::string& path) {
  const google::protobuf::Descriptor* type = &root;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    if (type == nullptr) return "";
    const google::protobuf::FieldDescriptor* field = type->FindFieldByName(part);
    if (field == nullptr) {
      std::vector<std::string> names;
      for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
      return DidYouMean(part, names);
    }
    type = field->message_type();
  }
  return "";
}

// The label; if it is the value of an enum field that has several names, all of them.
std::string TitleOf(const std::string& label, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (setting.substr(equals + 1) != label) continue;
    const auto field = FindFieldType(*JobConfig::descriptor(), setting.substr(0, equals));
    if (!field.ok() || (*field)->enum_type() == nullptr) continue;
    const auto* value = (*field)->enum_type()->FindValueByName(absl::AsciiStrToUpper(label));
    if (value != nullptr && EnumValueText(*value) != value->name()) return EnumValueText(*value);
  }
  return label;
}

}  // namespace

bool SetsAny(const PlannedAxis& axis, std::span<const char* const> beginnings) {
  const auto is_set = [&](const std::string& setting) {
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](const char* begin) { return absl::StartsWith(setting, begin); });
  };
  return std::any_of(axis.settings.begin(), axis.settings.end(), [&](const auto& of_value) {
    return std::any_of(of_value.begin(), of_value.end(), is_set);
  });
}

std::string AxisHeading(const PlannedAxis& axis) {
  constexpr std::pair<const char*, const char*> kUnits[] = {
      {"_bytes", "bytes"}, {"_kib", "KiB"},     {"_mib", "MiB"},
      {"_mb", "MB"},       {"_us", "us"},       {"_ms", "ms"},
      {"_seconds", "s"},   {"_mbit", "Mbit/s"}, {"_steps", "steps"}};
  absl::string_view name = axis.name;
  std::string unit;
  for (const auto& [end, text] : kUnits) {
    if (absl::ConsumeSuffix(&name, end)) unit = absl::StrCat(" (", text, ")");
  }
  return absl::StrCat(absl::StrReplaceAll(name, {{"_", " "}}), unit);
}

bool IsExperimentName(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_';
  });
}

bool IsSettingOfPlace(const std::string& setting) {
  return absl::StartsWith(setting, kPlacePrefix);
}

absl::Status ApplySetting(const std::string& setting, JobConfig& job, Place& place) {
  const size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", setting, "\" is not a setting; write \"path.to.field=value\""));
  }
  std::string path = setting.substr(0, equals);
  const std::string value = setting.substr(equals + 1);
  if (path == "seed") {
    return absl::InvalidArgumentError(
        "seed cannot be set, since each repeat has its own; set first_seed and repeats of the "
        "experiment");
  }
  const bool of_place = IsSettingOfPlace(path);
  if (of_place) path = path.substr(sizeof(kPlacePrefix) - 1);
  const absl::Status status =
      of_place ? SetFieldFromText(place, path, value) : SetFieldFromText(job, path, value);
  if (status.ok()) return status;
  const auto& type = of_place ? *Place::descriptor() : *JobConfig::descriptor();
  return absl::InvalidArgumentError(
      absl::StrCat(of_place ? kPlacePrefix : "", status.message(), NearestPart(type, path)));
}

absl::Status ExperimentAxes::Read() {
  if (static_cast<size_t>(file_.axes_size()) > kMaxAxes) {
    return text_.Error({{"axes", static_cast<int>(kMaxAxes)}},
                       absl::StrCat(file_.axes_size(), " axes are too many; give at most ",
                                    kMaxAxes, ", or set several fields in one value"));
  }
  for (int i = 0; i < file_.axes_size(); ++i) RETURN_IF_ERROR(TakeAxis(i));
  return CheckCombinations();
}

absl::Status ExperimentAxes::TakeAxis(int number) {
  const Axis& axis = file_.axes(number);
  const bool is_short = !axis.field().empty() || axis.values_size() > 0;
  const Path path = {{"axes", number}};
  PlannedAxis planned{.name = axis.name()};
  if (planned.name.empty()) {
    planned.name = axis.field().substr(axis.field().rfind('.') + 1);
  }
  if (!IsExperimentName(planned.name)) {
    return text_.Error(
        path,
        "axes: name is missing or invalid; give the axis a name of letters, digits, '-' and '_'");
  }
  for (const PlannedAxis& other : axes_) {
    if (other.name != planned.name) continue;
    return text_.Error(
        path, absl::StrCat("axis ", planned.name, " is defined twice; rename one of them"));
  }
  if (is_short == (axis.value_size() > 0) || (is_short && axis.field().empty())) {
    return text_.Error(path, absl::StrCat("axis ", planned.name,
                                          ": give either `field` with `values`, or some `value`"));
  }
  for (int i = 0; i < axis.values_size(); ++i) {
    RETURN_IF_ERROR(TakeValue(number, {{"axes", number}, {"values", i}}, axis.values(i),
                              {absl::StrCat(axis.field(), "=", axis.values(i))}, planned));
  }
  for (int i = 0; i < axis.value_size(); ++i) {
    const AxisValue& value = axis.value(i);
    RETURN_IF_ERROR(TakeValue(number, {{"axes", number}, {"value", i}}, value.label(),
                              {value.set().begin(), value.set().end()}, planned));
  }
  if (planned.labels.empty()) {
    return text_.Error(path,
                       absl::StrCat("axis ", planned.name, " has no values; give at least one"));
  }
  axes_.push_back(std::move(planned));
  return absl::OkStatus();
}

absl::Status ExperimentAxes::TakeValue(int axis, const Path& path, const std::string& label,
                                       std::vector<std::string> settings, PlannedAxis& to) {
  const std::string who = absl::StrCat("axis ", to.name, ", value ", label);
  if (label.empty()) {
    return text_.Error(path, absl::StrCat("axis ", to.name, ": give every value a label"));
  }
  if (std::find(to.labels.begin(), to.labels.end(), label) != to.labels.end()) {
    return text_.Error(path, absl::StrCat(who, " is listed twice; remove one"));
  }
  for (size_t i = 0; i < settings.size(); ++i) {
    Path of_setting = path;
    if (file_.axes(axis).value_size() > 0) of_setting.push_back({"set", static_cast<int>(i)});
    JobConfig job;
    Place place;
    const absl::Status status = ApplySetting(settings[i], job, place);
    if (!status.ok()) return text_.Error(of_setting, absl::StrCat(who, ": ", status.message()));
  }
  to.labels.push_back(label);
  to.titles.push_back(TitleOf(label, settings));
  to.settings.push_back(std::move(settings));
  return absl::OkStatus();
}

absl::StatusOr<size_t> ExperimentAxes::FindAxis(const Path& path, const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return i;
    names.push_back(axes_[i].name);
  }
  return text_.Error(path, absl::StrCat("unknown axis ", name, "; known axes: ",
                                        names.empty() ? "none" : absl::StrJoin(names, ", "),
                                        DidYouMean(name, names)));
}

absl::StatusOr<std::pair<size_t, size_t>> ExperimentAxes::FindValue(
    const Path& path, const std::string& where) const {
  const size_t equals = where.find('=');
  if (equals == std::string::npos) {
    return text_.Error(path, absl::StrCat("\"", where, "\": write \"axis=label\""));
  }
  ASSIGN_OR_RETURN(const size_t axis, FindAxis(path, where.substr(0, equals)));
  const std::vector<std::string>& labels = axes_[axis].labels;
  const std::string label = where.substr(equals + 1);
  const auto found = std::find(labels.begin(), labels.end(), label);
  if (found == labels.end()) {
    return text_.Error(path, absl::StrCat("axis ", axes_[axis].name, " has no value ", label,
                                          "; its values: ", absl::StrJoin(labels, ", "),
                                          DidYouMean(label, labels)));
  }
  return std::pair<size_t, size_t>{axis, found - labels.begin()};
}

absl::Status ExperimentAxes::CheckWhere(const Path& path, const Where& where) const {
  std::set<size_t> axes;
  for (int i = 0; i < where.size(); ++i) {
    Path of_where = path;
    of_where.push_back({"where", i});
    ASSIGN_OR_RETURN(const auto value, FindValue(of_where, where[i]));
    if (axes.insert(value.first).second) continue;
    return text_.Error(
        of_where, absl::StrCat("axis ", axes_[value.first].name, " is named twice; remove one"));
  }
  if (!where.empty()) return absl::OkStatus();
  return text_.Error(path, "`where` is missing; write where: \"axis=label\"");
}

absl::Status ExperimentAxes::CheckCombinations() const {
  for (int i = 0; i < file_.exclude_size(); ++i) {
    RETURN_IF_ERROR(CheckWhere({{"exclude", i}}, file_.exclude(i).where()));
  }
  for (int i = 0; i < file_.only_size(); ++i) {
    RETURN_IF_ERROR(CheckWhere({{"only", i}}, file_.only(i).where()));
  }
  for (int i = 0; i < file_.when_size(); ++i) {
    const Path path = {{"when", i}};
    RETURN_IF_ERROR(CheckWhere(path, file_.when(i).where()));
    for (int j = 0; j < file_.when(i).set_size(); ++j) {
      JobConfig job;
      Place place;
      const absl::Status status = ApplySetting(file_.when(i).set(j), job, place);
      if (!status.ok())
        return text_.Error({{"when", i}, {"set", j}}, std::string(status.message()));
    }
  }
  if (!file_.has_baseline()) return absl::OkStatus();
  return CheckWhere({{"baseline"}}, file_.baseline().where());
}

bool ExperimentAxes::Matches(const Where& where, const std::vector<size_t>& values) const {
  return std::all_of(where.begin(), where.end(), [&](const std::string& one) {
    const auto value = FindValue({}, one);
    return value.ok() && values[value->first] == value->second;
  });
}

bool ExperimentAxes::IsRun(const std::vector<size_t>& values) const {
  const auto matches = [&](const Combination& one) { return Matches(one.where(), values); };
  if (std::any_of(file_.exclude().begin(), file_.exclude().end(), matches)) return false;
  return file_.only().empty() || std::any_of(file_.only().begin(), file_.only().end(), matches);
}

std::vector<std::string> ExperimentAxes::SettingsOf(const std::vector<size_t>& values) const {
  std::vector<std::string> settings;
  for (size_t axis = 0; axis < values.size(); ++axis) {
    const auto& more = axes_[axis].settings[values[axis]];
    settings.insert(settings.end(), more.begin(), more.end());
  }
  for (const Condition& condition : file_.when()) {
    if (!Matches(condition.where(), values)) continue;
    settings.insert(settings.end(), condition.set().begin(), condition.set().end());
  }
  return settings;
}

std::optional<uint64_t> ExperimentAxes::WarmUpOf(const std::vector<size_t>& values) const {
  std::optional<uint64_t> steps;
  for (const Condition& condition : file_.when()) {
    if (condition.has_warm_up_steps() && Matches(condition.where(), values)) {
      steps = condition.warm_up_steps();
    }
  }
  return steps;
}

}  // namespace tug
