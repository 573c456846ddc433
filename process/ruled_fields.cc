// SPDX-License-Identifier: Apache-2.0
#include "process/ruled_fields.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tug {

absl::Status CheckOverrides(std::span<const std::string> overrides,
                            std::span<const RuledField> ruled) {
  for (const std::string& text : overrides) {
    const absl::string_view path = absl::string_view(text).substr(0, text.find('='));
    for (const RuledField& field : ruled) {
      if (path == field.path ||
          (absl::EndsWith(field.path, ".") && absl::StartsWith(path, field.path))) {
        return absl::InvalidArgumentError(
            absl::StrCat("--set ", text, ": not in this experiment: ", field.remedy));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace tug
