// SPDX-License-Identifier: Apache-2.0
#include "launch/job_security.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "config/text_proto.h"
#include "security/security_rules.h"

namespace tug {

absl::StatusOr<SecurityConfig::Mode> WrittenMode(const std::string& text, const std::string& source,
                                                 const std::vector<std::string>& overrides) {
  JobConfig config;
  RETURN_IF_ERROR(ParseTextProto(text, source, config));
  for (const std::string& override_text : overrides) {
    RETURN_IF_ERROR(ApplyOverride(config, override_text));
  }
  return config.security().mode();
}

absl::Status Settle(JobSecurity& security, bool exposed) {
  if (security.mode == SecurityConfig::MODE_DEFAULT) {
    security.mode = security.keys.mode;
    if (security.keys.none() && exposed) security.mode = SecurityConfig::TOKEN;
  }
  if (security.mode != SecurityConfig::NONE && security.keys.none()) {
    ASSIGN_OR_RETURN(security.keys, MakeJobKeys(security.mode));
    security.keys_made = true;
  }
  return CheckKeysFit(security.mode, security.keys);
}

std::string ModeOverride(const JobSecurity& security) {
  return absl::StrCat("security.mode=", SecurityConfig::Mode_Name(security.mode));
}

}  // namespace tug
