// SPDX-License-Identifier: Apache-2.0
#include "process/log_format.h"

#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/standard_error.h"

namespace tug {
namespace {

constexpr char kVariable[] = "TUG_LOG_FORMAT";

// Format set in the environment; text if unset or empty; nothing if unknown.
std::optional<LogFormat> Named() {
  const char* const name = std::getenv(kVariable);
  return name == nullptr || *name == '\0' ? LogFormat::kText : ParseLogFormat(name);
}

}  // namespace

absl::Status ChooseLogFormat() {
  const std::optional<LogFormat> format = Named();
  if (!format.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kVariable, " is '", std::getenv(kVariable), "': set it to text or json"));
  }
  SetLogFormat(*format);
  return absl::OkStatus();
}

bool LogIsForMachines() { return Named() == LogFormat::kJson; }

void Tell(const std::string& text) {
  if (LogIsForMachines()) return LogInfo(text);
  LogInFile(LogLevel::kInfo, text);
  WriteStandardError(absl::StrCat(StandardErrorIsTerminal() ? "\n" : "", text, "\n"));
}

void Warn(const std::string& text) {
  if (LogIsForMachines()) return LogWarning(text);
  LogInFile(LogLevel::kWarning, text);
  PrintLineToStderr(absl::StrCat("tug: warning: ", text));
}

}  // namespace tug
