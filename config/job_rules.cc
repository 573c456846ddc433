// SPDX-License-Identifier: Apache-2.0
#include "config/job_rules.h"

#include <cctype>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "config/field_path.h"

namespace tug {
namespace {

absl::Status CheckField(const JobConfig& config, const JobField& field) {
  ASSIGN_OR_RETURN(const FieldRef ref, FindField(config, field.path));
  const google::protobuf::EnumDescriptor* names = ref.field->enum_type();
  const double value = ref.Number();
  const bool known = names == nullptr ||
                     (value != 0 && names->FindValueByNumber(static_cast<int>(value)) != nullptr);
  if (!ref.IsSet() || (names != nullptr && value == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        field.path,
        " is not set in the configuration of the job; run the same version of tug on all hosts"));
  }
  if (known && InRange(field.rule, value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field.path, " = ", ref.Text(), " is out of range: ",
      names == nullptr ? RangeText(field.rule) : absl::StrCat("one of ", EnumNames(*names)),
      "; set ", field.path));
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

bool Applies(const JobConfig& config, const std::string& path) {
  const absl::StatusOr<bool> chosen = IsChosen(config, path);
  TUG_CHECK_OK(chosen);
  return *chosen;
}

absl::Status CheckRanges(const JobConfig& config) {
  for (const JobField& field : JobFields()) {
    if (Applies(config, field.path)) RETURN_IF_ERROR(CheckField(config, field));
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
