// SPDX-License-Identifier: Apache-2.0
#include "config/job_rules.h"

#include <cctype>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "config/field_path.h"

namespace tug {
namespace {

std::string RangeText(const FieldRule& rule) {
  const std::string min = absl::StrFormat("%.12g", rule.min);
  const std::string max = absl::StrFormat("%.12g", rule.max);
  switch (rule.ends) {
    case Ends::kBoth:
      return absl::StrCat(min, "..", max);
    case Ends::kMaxOnly:
      return absl::StrCat("(", min, ", ", max, "]");
    case Ends::kMinOnly:
      return absl::StrCat("[", min, ", ", max, ")");
  }
  return "";
}

bool InRange(const FieldRule& rule, double value) {
  if (!std::isfinite(value)) return false;
  if (value < rule.min || (value == rule.min && rule.ends == Ends::kMaxOnly)) return false;
  return value < rule.max || (value == rule.max && rule.ends != Ends::kMinOnly);
}

absl::Status CheckField(const JobConfig& config, const FieldRule& rule) {
  ASSIGN_OR_RETURN(const FieldRef ref, FindField(config, rule.path));
  const google::protobuf::EnumDescriptor* names = ref.field->enum_type();
  const double value = ref.Number();
  const bool known = names == nullptr ||
                     (value != 0 && names->FindValueByNumber(static_cast<int>(value)) != nullptr);
  if (!ref.IsSet() || (names != nullptr && value == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        rule.path,
        " is not set in the configuration of the job; run the same version of tug on all hosts"));
  }
  if (known && InRange(rule, value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(rule.path, " = ", ref.Text(), " is out of range: ",
                   names == nullptr ? absl::StrCat(RangeText(rule), " ", rule.meaning)
                                    : absl::StrCat("one of ", EnumNames(*names)),
                   "; set ", rule.path));
}

// "train.steps = 10".
absl::StatusOr<std::string> NameAndValue(const JobConfig& config, const char* path) {
  ASSIGN_OR_RETURN(const FieldRef ref, FindField(config, path));
  return absl::StrCat(path, " = ", ref.Text());
}

absl::Status CheckText(const JobConfig& config) {
  const std::string& name = config.name();
  bool plain = !name.empty() && name.size() <= 64;
  for (const char c : name) {
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_');
  }
  if (!plain) {
    return absl::InvalidArgumentError(absl::StrCat(
        "name = \"", name, "\" is not a job name: 1..64 letters, digits, '-' or '_'; set name"));
  }
  if (config.data().path().empty() && config.data().random().samples() == 0 &&
      !config.model().external() && config.compute() != JobConfig::REPLAY &&
      config.replay().profile().empty()) {
    return absl::InvalidArgumentError(
        "data.path is not set: it names the text to train on; set data.path to a UTF-8 file or a "
        "folder of files");
  }
  return absl::OkStatus();
}

}  // namespace

bool Applies(const JobConfig& config, const FieldRule& rule) {
  const absl::StatusOr<bool> chosen = IsChosen(config, rule.path);
  TUG_CHECK_OK(chosen);
  return *chosen;
}

absl::Status CheckRanges(const JobConfig& config) {
  for (const FieldRule& rule : FieldRules()) {
    if (Applies(config, rule)) RETURN_IF_ERROR(CheckField(config, rule));
  }
  return absl::OkStatus();
}

absl::Status Validate(const JobConfig& config) {
  RETURN_IF_ERROR(CheckText(config));
  RETURN_IF_ERROR(CheckRanges(config));
  for (const ValidityRule& rule : ValidityRules()) {
    if (!rule.broken(config)) continue;
    ASSIGN_OR_RETURN(std::string message, NameAndValue(config, rule.field));
    if (rule.other_field != nullptr) {
      ASSIGN_OR_RETURN(const std::string other, NameAndValue(config, rule.other_field));
      absl::StrAppend(&message, " cannot be combined with ", other);
    } else {
      absl::StrAppend(&message, " is invalid");
    }
    return absl::InvalidArgumentError(absl::StrCat(message, ": ", rule.reason));
  }
  return absl::OkStatus();
}

}  // namespace tug
